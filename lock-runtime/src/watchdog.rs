//! When to renew and when a lease ends: a state machine without I/O.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use crate::clock::Moment;
use crate::lease::{self, Lease};
use crate::request::LeaseId;

/// Keeps the schedule of all held locks.
#[derive(Debug, Default)]
pub(crate) struct Watchdog {
    leases: HashMap<LeaseId, Watched>,
    agenda: BTreeSet<(Moment, LeaseId)>,
}

#[derive(Debug)]
struct Watched {
    lease: Arc<Lease>,
    /// `None` while a renewal is in flight, and for a fixed lease.
    renew_at: Option<Moment>,
    /// Its place in the agenda.
    at: Moment,
}

/// What the watchdog wants done.
#[derive(Debug)]
pub(crate) enum Due {
    Renew(LeaseId),
    /// Its deadline has passed; it is watched no longer.
    Lapsed(Arc<Lease>),
}

impl Watchdog {
    /// Watches a lease that was granted for `ttl` from `since`.
    pub(crate) fn watch(&mut self, lease: Arc<Lease>, now: Moment, since: Moment, ttl: Duration) {
        let renew_at = if ttl < lease.terms.ttl {
            // Granted for less than was asked for. Half of what remains is
            // enough for short bodies to end without any renewal.
            Some(now.after(lease.deadline().since(now) / 2))
        } else {
            lease.terms.renew.then(|| next_renewal(since, ttl))
        };
        let id = lease.terms.id;
        let at = lease.deadline();
        self.leases.insert(
            id,
            Watched {
                lease,
                renew_at,
                at,
            },
        );
        self.enter(id);
    }

    /// Ends the schedule of a lease, before its release is sent.
    pub(crate) fn forget(&mut self, id: LeaseId) -> Option<Arc<Lease>> {
        let watched = self.leases.remove(&id)?;
        self.agenda.remove(&(watched.at, id));
        Some(watched.lease)
    }

    /// A renewal that was sent after `since` has succeeded. A lease that has
    /// lapsed meanwhile stays lapsed: its body may have been stopped.
    pub(crate) fn renewed(&mut self, id: LeaseId, now: Moment, since: Moment) {
        let Some(watched) = self.leases.get_mut(&id) else {
            return;
        };
        let terms = &watched.lease.terms;
        if now < watched.lease.deadline() {
            watched.lease.extend(lease::deadline(since, terms.ttl));
            watched.renew_at = terms.renew.then(|| next_renewal(since, terms.ttl));
        }
        self.enter(id);
    }

    /// A renewal has failed or was not answered: again soon, until the lease's
    /// own deadline.
    pub(crate) fn retry(&mut self, id: LeaseId, now: Moment) {
        if let Some(watched) = self.leases.get_mut(&id) {
            watched.renew_at = Some(now.after(watched.lease.terms.ttl / 20));
            self.enter(id);
        }
    }

    /// The next thing to do at `now`.
    pub(crate) fn due(&mut self, now: Moment) -> Option<Due> {
        let (at, id) = *self.agenda.first()?;
        if at > now {
            return None;
        }
        let watched = self
            .leases
            .get_mut(&id)
            .expect("what stands in the agenda is watched");
        if now >= watched.lease.deadline() {
            return self.forget(id).map(Due::Lapsed);
        }
        watched.renew_at = None;
        self.enter(id);
        Some(Due::Renew(id))
    }

    /// When [`due`](Self::due) will next have something.
    pub(crate) fn next_wakeup(&self) -> Option<Moment> {
        self.agenda.first().map(|(at, _)| *at)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.leases.is_empty()
    }

    /// Everything that is watched, which then is no longer.
    pub(crate) fn forget_all(&mut self) -> Vec<Arc<Lease>> {
        self.agenda.clear();
        self.leases
            .drain()
            .map(|(_, watched)| watched.lease)
            .collect()
    }

    /// Moves a lease to its place in the agenda.
    fn enter(&mut self, id: LeaseId) {
        if let Some(watched) = self.leases.get_mut(&id) {
            self.agenda.remove(&(watched.at, id));
            let deadline = watched.lease.deadline();
            watched.at = watched.renew_at.map_or(deadline, |at| at.min(deadline));
            self.agenda.insert((watched.at, id));
        }
    }
}

/// A third of the ttl, give or take a tenth of that, so that locks that were
/// taken together are not renewed together for ever.
fn next_renewal(since: Moment, ttl: Duration) -> Moment {
    since.after((ttl / 3).mul_f64(0.9 + 0.2 * fastrand::f64()))
}
