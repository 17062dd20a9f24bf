//! A waker that notes that it was called, for one of several parts: it is polled only then.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};

use super::last_waker::LastWaker;

#[derive(Debug)]
pub(crate) struct Bell {
    rung: AtomicBool,
    /// Polls all parts.
    whole: LastWaker,
}

impl Bell {
    /// One that has rung: a part is polled at first.
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            rung: AtomicBool::new(true),
            whole: LastWaker::default(),
        })
    }

    /// Whether it has rung since the last call of this. From now on it wakes `whole`.
    pub(crate) fn has_rung(&self, whole: &Waker) -> bool {
        self.whole.set(whole);
        self.rung.swap(false, Ordering::SeqCst)
    }

    /// The part is to be polled by whoever polls the whole now.
    pub(crate) fn ring(&self) {
        self.rung.store(true, Ordering::SeqCst);
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.ring();
        self.whole.wake();
    }
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::base::wakes::Wakes;

    #[test]
    fn a_wake_up_is_noted_and_wakes_the_whole() {
        let (bell, calls) = (Bell::new(), Arc::new(Wakes::default()));
        let whole = Waker::from(Arc::clone(&calls));
        assert!(bell.has_rung(&whole), "it is polled at first");
        assert!(!bell.has_rung(&whole));
        Waker::from(Arc::clone(&bell)).wake();
        assert_eq!(calls.count(), 1);
        assert!(bell.has_rung(&whole));
        bell.ring();
        assert_eq!(calls.count(), 1, "who rings polls it");
        assert!(bell.has_rung(&whole));
    }
}
