//! The waker of the last poll.

use std::sync::PoisonError;
use std::task::Waker;

use crate::base::sync::{Mutex, MutexGuard};

#[derive(Debug, Default)]
pub(crate) struct LastWaker(Mutex<Option<Waker>>);

impl LastWaker {
    pub(crate) fn set(&self, waker: &Waker) {
        let mut last = self.lock();
        match &mut *last {
            Some(known) => known.clone_from(waker),
            None => *last = Some(waker.clone()),
        }
    }

    pub(crate) fn wake(&self) {
        if let Some(waker) = &*self.lock() {
            waker.wake_by_ref();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Waker>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
