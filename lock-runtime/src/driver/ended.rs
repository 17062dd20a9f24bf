//! Leases that have ended while code may still act under them, and the release of their locks.
//! A state machine without I/O.

use std::sync::Arc;
use std::time::Duration;

use crate::base::agenda::Agenda;
use crate::base::clock::Moment;
use crate::base::numbers::Numbered;
use crate::held::lease::{InUse, Lease};
use crate::telemetry::events::End;
use crate::types::deadline::margin;
use crate::types::terms::LeaseId;

/// Whether it was lost or lasted for as long as it may, of which the events tell.
pub(crate) type HowItEnded = fn(Duration) -> End;

/// A lease that has ended here.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) lease: Arc<Lease>,
    /// When it ended here.
    pub(crate) at: Moment,
    /// When it ends at the server.
    pub(crate) ends: Moment,
    pub(crate) end: HowItEnded,
}

impl Ended {
    /// The end of the time for which the lock is kept, for callers that may act under the lease.
    fn kept_until(&self) -> Moment {
        match self.lease.in_use() {
            InUse::ByPoll => self.ends,
            InUse::ByGuard => self.ends.min(self.at.after(self.margin())),
            InUse::No => self.at,
        }
    }

    fn margin(&self) -> Duration {
        let terms = &self.lease.terms;
        margin(terms.longest().unwrap_or(terms.ttl).min(terms.ttl))
    }
}

/// Those whose locks are not released yet.
#[derive(Debug, Default)]
pub(crate) struct EndedLeases {
    leases: Numbered<LeaseId, (Moment, Ended)>,
    /// When the next of them is released.
    agenda: Agenda<LeaseId>,
}

impl EndedLeases {
    /// Keeps it, or returns it if its lock is to be released at once.
    pub(crate) fn keep(&mut self, now: Moment, ended: Ended) -> Option<Ended> {
        let (id, until) = (ended.lease.id, ended.kept_until());
        if until <= now {
            return Some(ended);
        }
        self.agenda.insert(until, id);
        self.leases.insert(id, (until, ended));
        None
    }

    /// No poll runs under it any more: returns it if its lock is to be released now.
    pub(crate) fn poll_returned(&mut self, id: LeaseId, now: Moment) -> Option<Ended> {
        let ended = self.forget(id)?;
        self.keep(now, ended)
    }

    /// A renewal that was under way has succeeded: it ends later at the server. It has
    /// ended here all the same.
    pub(crate) fn renewed(&mut self, id: LeaseId, ends: Moment) {
        if let Some(mut ended) = self.forget(id) {
            ended.ends = ended.ends.max(ends);
            let until = ended.kept_until();
            self.agenda.insert(until, id);
            self.leases.insert(id, (until, ended));
        }
    }

    /// The next one whose lock is to be released at `now`.
    pub(crate) fn due(&mut self, now: Moment) -> Option<Ended> {
        let id = self.agenda.due(now)?;
        self.forget(id)
    }

    /// Takes one out, to release its lock.
    pub(crate) fn forget(&mut self, id: LeaseId) -> Option<Ended> {
        let (until, ended) = self.leases.remove(&id)?;
        self.agenda.remove(until, id);
        Some(ended)
    }

    /// When [`due`](Self::due) will next have something.
    pub(crate) fn next_wakeup(&self) -> Option<Moment> {
        self.agenda.next()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.leases.is_empty()
    }

    #[cfg(feature = "metrics")]
    pub(crate) fn leases(&self) -> impl Iterator<Item = &Arc<Lease>> {
        self.leases.values().map(|(_, ended)| &ended.lease)
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;
    use crate::base::clock::Clock;
    use crate::held::home::Nowhere;
    use crate::held::running::Running;
    use crate::types::deadline::deadline;
    use crate::types::terms::Terms;

    const TTL: Duration = Duration::from_secs(10);
    const ID: LeaseId = LeaseId(1);

    /// A lease that its caller has, and the moment of its deadline.
    fn lease(max_hold: Option<Duration>) -> (Arc<Lease>, Moment) {
        let clock = Clock::manual();
        let now = clock.now();
        let terms = Terms {
            max_hold,
            ..Terms::of(ID, "k", TTL)
        };
        let ends = deadline(now, TTL);
        let lease = Lease::new(terms.into(), 1, now, ends, clock, Arc::new(Nowhere));
        lease.arrive();
        let deadline = lease.deadline();
        (Arc::new(lease), deadline)
    }

    /// It ends at its deadline; returns the leases that are to be released then.
    fn end(kept: &mut EndedLeases, lease: &Arc<Lease>, at: Moment) -> Option<Ended> {
        lease.end();
        let ended = Ended {
            lease: Arc::clone(lease),
            at,
            ends: lease.granted.after(TTL),
            end: End::Lost,
        };
        kept.keep(at, ended)
    }

    // Section: guarantees.md#no-poll-of-the-body-starts-after-its-deadline
    #[test]
    fn a_lock_is_kept_until_the_last_poll_has_returned() {
        let (lease, at) = lease(None);
        let mut kept = EndedLeases::default();
        let polls = (Running::begin(&lease), Running::begin(&lease));
        assert!(end(&mut kept, &lease, at).is_none());
        drop(polls.0);
        assert!(kept.poll_returned(ID, at).is_none());
        lease.stopped();
        drop(polls.1);
        assert!(kept.poll_returned(ID, at).is_some());
        assert!(kept.is_empty() && kept.next_wakeup().is_none());
    }

    // Section: guarantees.md#no-poll-of-the-body-starts-after-its-deadline
    #[test]
    fn it_is_kept_until_the_lease_ends_at_the_server_at_the_longest() {
        let (lease, at) = lease(None);
        let mut kept = EndedLeases::default();
        let _poll = Running::begin(&lease);
        assert!(end(&mut kept, &lease, at).is_none());
        let ends = lease.granted.after(TTL);
        assert_eq!(kept.next_wakeup(), Some(ends));
        assert!(kept.due(at).is_none());
        // A renewal was under way.
        let later = ends.after(TTL);
        kept.renewed(ID, later);
        assert!(kept.due(ends).is_none());
        assert!(kept.due(later).is_some());
        assert!(kept.forget(ID).is_none());
    }

    #[test]
    fn a_body_that_awaits_keeps_nothing() {
        let (lease, at) = lease(None);
        let mut slot = None;
        lease.watch_for_body(&mut slot, Waker::noop());
        let mut kept = EndedLeases::default();
        assert!(end(&mut kept, &lease, at).is_some());
    }

    #[test]
    fn a_guard_keeps_it_for_the_margin() {
        for max_hold in [None, Some(TTL / 5)] {
            let (lease, at) = lease(max_hold);
            let mut slot = None;
            lease.watch(&mut slot, Waker::noop());
            let mut kept = EndedLeases::default();
            assert!(end(&mut kept, &lease, at).is_none());
            let until = at.after(margin(max_hold.unwrap_or(TTL)));
            assert!(until < lease.granted.after(TTL));
            assert_eq!(kept.next_wakeup(), Some(until));
            assert!(kept.due(until).is_some());
        }
    }

    #[test]
    fn a_guard_has_what_is_left_of_the_margin_after_a_body_that_has_finished() {
        let (lease, at) = lease(None);
        let mut kept = EndedLeases::default();
        let poll = Running::begin(&lease);
        assert!(end(&mut kept, &lease, at).is_none());
        drop(poll);
        let soon = at.after(Duration::from_millis(1));
        assert!(kept.poll_returned(ID, soon).is_none());
        assert_eq!(kept.next_wakeup(), Some(at.after(margin(TTL))));
    }

    #[test]
    fn what_nobody_has_got_is_not_kept() {
        let clock = Clock::manual();
        let now = clock.now();
        let terms = Terms::of(ID, "k", TTL).into();
        let lease = Lease::new(terms, 1, now, now, clock, Arc::new(Nowhere));
        let mut kept = EndedLeases::default();
        assert!(end(&mut kept, &Arc::new(lease), now).is_some());
    }
}
