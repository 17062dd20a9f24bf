//! One lease: until when the lock is surely ours, and who wants to know when it
//! ends.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use tokio::sync::mpsc;

use crate::clock::{Clock, Moment};
use crate::driver::{Answer, Op};
use crate::manager::Shared;
use crate::request::Terms;

/// The last moment at which a lock is surely ours, given the moment **before**
/// the command was sent that set its `ttl` on the server.
///
/// The server starts to count later than `sent`, so its clock may run faster
/// than ours by the drift (1 % of the ttl + 2 ms, as in the Redlock algorithm)
/// and the body still has the margin in which to stop.
pub(crate) fn deadline(sent: Moment, ttl: Duration) -> Moment {
    let drift = ttl / 100 + Duration::from_millis(2);
    let margin = (ttl / 50).max(Duration::from_millis(50)).min(ttl / 4);
    sent.after(ttl.saturating_sub(drift + margin))
}

/// A lock that was granted, shared between its guard and the driver.
pub(crate) struct Lease {
    pub(crate) terms: Arc<Terms>,
    pub(crate) fence: u64,
    pub(crate) clock: Clock,
    /// As [`Moment::as_nanos`]; zero once the lease has ended.
    deadline: AtomicU64,
    released: AtomicBool,
    mailbox: mpsc::UnboundedSender<Op>,
    watchers: Mutex<Watchers>,
}

#[derive(Default)]
struct Watchers {
    next: usize,
    wakers: Vec<(usize, Waker)>,
}

impl Lease {
    pub(crate) fn new(
        terms: Arc<Terms>,
        fence: u64,
        deadline: Moment,
        clock: Clock,
        mailbox: mpsc::UnboundedSender<Op>,
    ) -> Self {
        Self {
            terms,
            fence,
            clock,
            deadline: AtomicU64::new(deadline.as_nanos()),
            released: AtomicBool::new(false),
            mailbox,
            watchers: Mutex::default(),
        }
    }

    pub(crate) fn deadline(&self) -> Moment {
        Moment::from_nanos(self.deadline.load(Ordering::SeqCst))
    }

    pub(crate) fn is_held(&self) -> bool {
        self.clock.now() < self.deadline()
    }

    pub(crate) fn remaining(&self) -> Duration {
        self.deadline().since(self.clock.now())
    }

    pub(crate) fn belongs_to(&self, shared: &Shared) -> bool {
        self.mailbox.same_channel(&shared.mailbox)
    }

    /// Moves the deadline on. Only the driver calls it, before the old one has
    /// passed: a lease that has lapsed stays so.
    pub(crate) fn extend(&self, deadline: Moment) {
        self.deadline
            .fetch_max(deadline.as_nanos(), Ordering::SeqCst);
    }

    /// The lock is no longer ours: no poll of the body starts from here on.
    pub(crate) fn end(&self) {
        self.deadline.store(0, Ordering::SeqCst);
        let watchers = std::mem::take(&mut self.watchers().wakers);
        for (_, waker) in watchers {
            waker.wake();
        }
    }

    /// Hands the release to the driver, once.
    pub(crate) fn release(self: &Arc<Self>, answer: Option<Answer<bool>>) {
        if !self.released.swap(true, Ordering::SeqCst) {
            // The driver outlives every lease; were it gone, the server's ttl
            // would free the lock.
            let _ = self.mailbox.send(Op::Release {
                id: self.terms.id,
                answer,
            });
        }
    }

    /// Wakes `waker` when the lease ends. `slot` remembers the place between
    /// polls, so that a waker that changes replaces its predecessor.
    pub(crate) fn watch(&self, slot: &mut Option<usize>, waker: &Waker) {
        let mut watchers = self.watchers();
        let known =
            slot.and_then(|slot| watchers.wakers.iter_mut().find(|(place, _)| *place == slot));
        if let Some((_, known)) = known {
            known.clone_from(waker);
            return;
        }
        let place = watchers.next;
        watchers.next += 1;
        watchers.wakers.push((place, waker.clone()));
        *slot = Some(place);
    }

    pub(crate) fn unwatch(&self, slot: Option<usize>) {
        if let Some(slot) = slot {
            self.watchers().wakers.retain(|(place, _)| *place != slot);
        }
    }

    fn watchers(&self) -> MutexGuard<'_, Watchers> {
        // Nothing can panic while the lock is held but a waker's clone, which
        // leaves the list whole.
        self.watchers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("key", &self.terms.key)
            .field("fence", &self.fence)
            .field("remaining", &self.remaining())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::LockKey;
    use crate::request::{LeaseId, Wait};

    fn left(ttl_ms: u64) -> u128 {
        let sent = Moment::from_nanos(1);
        deadline(sent, Duration::from_millis(ttl_ms))
            .since(sent)
            .as_millis()
    }

    #[test]
    fn the_deadline_leaves_drift_and_margin() {
        assert_eq!(left(10_000), 10_000 - 102 - 200);
        assert_eq!(left(1_000), 1_000 - 12 - 50);
        assert_eq!(left(100), 100 - 3 - 25);
    }

    fn lease(clock: &Clock) -> Lease {
        let terms = Terms {
            id: LeaseId(1),
            key: LockKey::from("k"),
            ttl: Duration::from_secs(10),
            wait: Wait::Forever,
            renew: true,
            function: None,
        };
        let deadline = deadline(clock.now(), terms.ttl);
        let (mailbox, _) = mpsc::unbounded_channel();
        Lease::new(terms.into(), 1, deadline, clock.clone(), mailbox)
    }

    #[test]
    fn what_remains_grows_less_and_ends_with_the_lease() {
        let clock = Clock::manual();
        let lease = lease(&clock);
        let all = lease.remaining();
        assert_eq!(all, Duration::from_millis(10_000 - 102 - 200));
        clock.advance(Duration::from_secs(1));
        assert_eq!(lease.remaining() + Duration::from_secs(1), all);
        lease.end();
        assert_eq!(lease.remaining(), Duration::ZERO);
    }

    #[test]
    fn everybody_who_watches_is_woken_once() {
        struct Count(AtomicU64);
        impl std::task::Wake for Count {
            fn wake(self: Arc<Self>) {
                self.0.fetch_add(1, Ordering::SeqCst);
            }
        }

        let lease = lease(&Clock::manual());
        let count = Arc::new(Count(AtomicU64::new(0)));
        let waker = Waker::from(Arc::clone(&count));
        let mut slots = [None; 4];
        for slot in &mut slots {
            lease.watch(slot, &waker);
        }
        lease.watch(&mut slots[1], &waker);
        lease.unwatch(slots[3]);
        lease.end();
        assert_eq!(count.0.load(Ordering::SeqCst), 3);
    }

    #[test]
    fn a_tiny_ttl_does_not_underflow() {
        assert_eq!(left(1), 0);
    }
}
