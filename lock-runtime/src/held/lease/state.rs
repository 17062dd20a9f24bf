//! What callers and the driver's thread change in one lease: its deadline, the polls under it, and the tasks that it wakes.
//!
//! `spec/tests/interleavings.rs` tries every order of two callers and the thread.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::PoisonError;
use std::task::Waker;

use crate::base::sync::{AtomicBool, AtomicU64, AtomicUsize, Mutex, MutexGuard, Ordering};

/// The part of a lease that changes.
#[derive(Default)]
pub(super) struct State {
    /// In nanoseconds; zero once the lease has ended.
    deadline: AtomicU64,
    /// Whether the caller has its guard.
    arrived: AtomicBool,
    /// How many polls of bodies run under it.
    polls: AtomicUsize,
    /// Whether its end has stopped a body.
    stopped: AtomicBool,
    /// Whether code has acted under it that its end does not stop.
    unstopped: AtomicBool,
    /// Whether somebody would like to have the lock.
    asked: AtomicBool,
    watchers: Mutex<Vec<Watcher>>,
}

/// A task to wake when a lease ends.
struct Watcher {
    slot: u64,
    waker: Waker,
    purpose: Purpose,
}

/// Why a task waits for the end of a lease.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// It runs a body, which is dropped then.
    Body,
    Loss,
    /// It is also woken when somebody would like to have the lock.
    Asked,
}

/// The code that may still run under an ended lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InUse {
    /// A poll of a body runs.
    ByPoll,
    /// The holder has a guard, and either no stopped body or other code beside it: it may have
    /// just seen that the lock was held.
    ByGuard,
    No,
}

impl State {
    pub(super) fn until(deadline: u64) -> Self {
        Self {
            deadline: AtomicU64::new(deadline),
            ..Self::default()
        }
    }

    pub(super) fn deadline(&self) -> u64 {
        self.deadline.load(Ordering::SeqCst)
    }

    pub(super) fn extend(&self, deadline: u64) {
        self.deadline.fetch_max(deadline, Ordering::SeqCst);
    }

    /// The deadline comes first: a task that looks at it after it has begun to watch is woken, or sees it.
    pub(super) fn end(&self) {
        self.deadline.store(0, Ordering::SeqCst);
        let watchers = std::mem::take(&mut *self.watchers());
        if watchers.iter().any(|it| it.purpose == Purpose::Body) {
            self.stopped();
        }
        for watcher in watchers {
            wake(watcher.waker);
        }
    }

    /// Whether that is news.
    pub(super) fn ask(&self) -> bool {
        if self.asked.swap(true, Ordering::SeqCst) {
            return false;
        }
        let watchers = self.watchers();
        let asked = watchers.iter().filter(|it| it.purpose == Purpose::Asked);
        let wakers: Vec<_> = asked.map(|it| it.waker.clone()).collect();
        drop(watchers);
        wakers.into_iter().for_each(wake);
        true
    }

    pub(super) fn is_asked(&self) -> bool {
        self.asked.load(Ordering::SeqCst)
    }

    pub(super) fn arrive(&self) {
        self.arrived.store(true, Ordering::SeqCst);
    }

    pub(super) fn has_arrived(&self) -> bool {
        self.arrived.load(Ordering::SeqCst)
    }

    pub(super) fn stopped(&self) {
        self.stopped.store(true, Ordering::SeqCst);
    }

    pub(super) fn has_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    pub(super) fn unstopped(&self) {
        self.unstopped.store(true, Ordering::SeqCst);
    }

    pub(super) fn poll_begins(&self) {
        self.polls.fetch_add(1, Ordering::SeqCst);
    }

    /// Whether it was the last one under a lease that has ended.
    pub(super) fn poll_returns(&self) -> bool {
        let was_last = self.polls.fetch_sub(1, Ordering::SeqCst) == 1;
        was_last && self.deadline() == 0
    }

    /// Once the lease has ended.
    pub(super) fn in_use(&self) -> InUse {
        // In this order: a body is stopped before its last poll returns.
        if self.polls.load(Ordering::SeqCst) > 0 {
            InUse::ByPoll
        } else if self.has_arrived() && self.has_more_than_stopped_bodies() {
            InUse::ByGuard
        } else {
            InUse::No
        }
    }

    fn has_more_than_stopped_bodies(&self) -> bool {
        !self.has_stopped() || self.unstopped.load(Ordering::SeqCst)
    }

    /// The waker of a known slot is replaced.
    pub(super) fn watch(&self, slot: u64, waker: &Waker, purpose: Purpose) {
        let mut watchers = self.watchers();
        match watchers.iter_mut().find(|known| known.slot == slot) {
            Some(known) => known.waker.clone_from(waker),
            None => watchers.push(Watcher {
                slot,
                waker: waker.clone(),
                purpose,
            }),
        }
    }

    pub(super) fn unwatch(&self, slot: u64) {
        self.watchers().retain(|known| known.slot != slot);
    }

    fn watchers(&self) -> MutexGuard<'_, Vec<Watcher>> {
        // Only the clone of a waker can panic while the list is locked, and leaves the list
        // intact.
        self.watchers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One that panics keeps nobody else from being woken.
fn wake(waker: Waker) {
    let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
}
