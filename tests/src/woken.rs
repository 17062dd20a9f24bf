//! A future that is polled only after a wake-up of its own: a timeout around it polls it too, which hides that nobody
//! has woken it.

use std::{
    fmt,
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

/// Polls the future inside once at first, and then after each of its wake-ups.
pub(crate) struct OnlyWoken<F> {
    future: Pin<Box<F>>,
    bell: Arc<Bell>,
}

struct Bell {
    rung: AtomicBool,
    outside: Mutex<Waker>,
}

impl<F: Future> OnlyWoken<F> {
    pub(crate) fn new(future: F) -> Self {
        Self {
            future: Box::pin(future),
            bell: Arc::new(Bell {
                rung: AtomicBool::new(true),
                outside: Mutex::new(Waker::noop().clone()),
            }),
        }
    }
}

impl<F: Future> Future for OnlyWoken<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.bell.tells(cx.waker());
        if !self.bell.rung.swap(false, Ordering::SeqCst) {
            return Poll::Pending;
        }
        let waker = Waker::from(Arc::clone(&self.bell));
        self.future.as_mut().poll(&mut Context::from_waker(&waker))
    }
}

impl Bell {
    fn tells(&self, waker: &Waker) {
        let mut outside = self.outside.lock().unwrap_or_else(PoisonError::into_inner);
        outside.clone_from(waker);
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.rung.store(true, Ordering::SeqCst);
        let outside = self.outside.lock().unwrap_or_else(PoisonError::into_inner);
        let waker = outside.clone();
        drop(outside);
        waker.wake();
    }
}

impl<F> fmt::Debug for OnlyWoken<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnlyWoken")
    }
}
