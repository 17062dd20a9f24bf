//! The watchdog: when to renew, and when a lease has lapsed. A state machine without
//! I/O.

use std::sync::Arc;
use std::time::Duration;

use crate::base::agenda::Agenda;
use crate::base::clock::Moment;
use crate::base::numbers::Numbered;
use crate::driver::ended::HowItEnded;
use crate::held::lease::Lease;
use crate::telemetry::events::End;
use crate::types::deadline::deadline;
use crate::types::terms::LeaseId;

/// How long a look for the caller waits at least for the next one.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);

/// Keeps the schedule of all held locks.
#[derive(Debug, Default)]
pub(crate) struct Watchdog {
    leases: Numbered<LeaseId, Watched>,
    agenda: Agenda<LeaseId>,
}

#[derive(Debug)]
struct Watched {
    lease: Arc<Lease>,
    /// `None` while a renewal is in flight, and for a fixed lease.
    renew_at: Option<Moment>,
    /// When it ends at the server, as late as its last renewal may have set that.
    ends: Moment,
    /// What a renewal may give: what was asked for, or more if more was granted.
    ttl: Duration,
    /// Its position in the agenda.
    at: Moment,
}

impl Watched {
    fn new(lease: Arc<Lease>, renew_at: Option<Moment>, ends: Moment, ttl: Duration) -> Self {
        let mut this = Self {
            at: lease.deadline(),
            ttl: lease.terms.ttl.max(ttl),
            lease,
            renew_at,
            ends,
        };
        this.at = this.next();
        this
    }

    /// When there is something to do about it.
    fn next(&self) -> Moment {
        let deadline = self.lease.deadline();
        self.renew_at.map_or(deadline, |at| at.min(deadline))
    }

    /// Whether it may be renewed: a lock that its caller has not received lasts for its ttl, and no longer.
    fn may_go_on(&self) -> bool {
        let lease = &self.lease;
        lease.is_received() || lease.deadline() < lease.granted.after(lease.terms.ttl / 10 * 9)
    }

    /// After which it is seen whether the caller has received it meanwhile.
    fn pause(&self, now: Moment) -> Duration {
        let left = self.lease.deadline().since(now);
        (left / 4).max(SHORTEST_PAUSE)
    }

    /// Whether no renewal was to come before its deadline, which has passed.
    fn is_over(&self) -> bool {
        self.renew_at.is_none() && (!self.lease.terms.renew || self.lease.is_final())
    }
}

/// Whether less was granted than requested, or a session whose time began long before the grant of a fixed lease.
fn falls_short(lease: &Lease, since: Moment, ttl: Duration) -> bool {
    let terms = &lease.terms;
    let most = lease.granted.after(terms.ttl / 10 * 9);
    ttl < terms.ttl || !terms.renew && since.after(ttl) < most
}

/// A task that the watchdog finds due.
#[derive(Debug)]
pub(crate) enum Due {
    Renew(LeaseId),
    /// Its deadline has passed; it is watched no longer. With when it ends at the server.
    Lapsed(Arc<Lease>, Moment),
    /// The same, after it has lasted for as long as was asked for.
    Over(Arc<Lease>, Moment),
}

impl Watchdog {
    /// Watches a lease that was granted for `ttl` from `since`.
    pub(crate) fn watch(&mut self, lease: Arc<Lease>, now: Moment, since: Moment, ttl: Duration) {
        let renew_at = if falls_short(&lease, since, ttl) && !lease.is_final() {
            // If the first half is enough, short bodies end without any renewal.
            Some(now.after(lease.deadline().since(now) / 2))
        } else {
            (lease.terms.renew && !lease.is_final()).then(|| next_renewal(since, ttl))
        };
        self.add(Watched::new(lease, renew_at, since.after(ttl), ttl));
    }

    /// Watches a lease that is not renewed, but only ends.
    pub(crate) fn limit(&mut self, lease: Arc<Lease>) {
        let (ends, ttl) = (lease.deadline(), Duration::ZERO);
        self.add(Watched::new(lease, None, ends, ttl));
    }

    fn add(&mut self, watched: Watched) {
        let id = watched.lease.id;
        self.agenda.insert(watched.at, id);
        self.leases.insert(id, watched);
    }

    pub(crate) fn lease(&self, id: LeaseId) -> Option<&Lease> {
        self.leases.get(&id).map(|watched| &*watched.lease)
    }

    /// Watches another lease of the same acquisition instead, with the same deadline. Returns the former one.
    pub(crate) fn replace(
        &mut self,
        id: LeaseId,
        by: impl FnOnce(&Lease) -> Arc<Lease>,
    ) -> Option<Arc<Lease>> {
        let watched = self.leases.get_mut(&id)?;
        let next = by(&watched.lease);
        Some(std::mem::replace(&mut watched.lease, next))
    }

    /// How a lease has ended, if its body was stopped before the driver noticed.
    pub(crate) fn end_seen_first(&self, id: LeaseId, now: Moment) -> Option<HowItEnded> {
        let watched = self.leases.get(&id)?;
        let lease = &watched.lease;
        let is_noticed = now >= lease.deadline() && lease.has_stopped();
        is_noticed.then_some(if watched.is_over() {
            End::Limited
        } else {
            End::Lost
        })
    }

    /// Ends the schedule of a lease, before its release is sent.
    pub(crate) fn forget(&mut self, id: LeaseId) -> Option<Arc<Lease>> {
        self.remove(id).map(|watched| watched.lease)
    }

    fn remove(&mut self, id: LeaseId) -> Option<Watched> {
        let watched = self.leases.remove(&id)?;
        self.agenda.remove(watched.at, id);
        Some(watched)
    }

    /// A renewal that was sent after `since` has given `ttl`; returns the lease and
    /// how much was left of it. A lease that has lapsed meanwhile stays lapsed: its
    /// body may have been stopped.
    pub(crate) fn renewed(
        &mut self,
        id: LeaseId,
        now: Moment,
        since: Moment,
        ttl: Duration,
    ) -> Option<(&Lease, Duration)> {
        let watched = self.leases.get_mut(&id)?;
        let terms = &watched.lease.terms;
        let left = watched.lease.deadline().since(now);
        watched.ends = watched.ends.max(since.after(ttl));
        watched.ttl = watched.ttl.max(ttl);
        if !left.is_zero() {
            watched.lease.extend(deadline(since, ttl));
            let goes_on = terms.renew || falls_short(&watched.lease, since, ttl);
            let goes_on = goes_on && !watched.lease.is_final();
            watched.renew_at = goes_on.then(|| next_renewal(since, ttl));
        }
        self.enter(id);
        let lease = &self.leases.get(&id)?.lease;
        (!left.is_zero()).then_some((lease, left))
    }

    /// A renewal has failed or was not answered: it is tried again soon, until the
    /// lease's own deadline.
    pub(crate) fn retry(&mut self, id: LeaseId, now: Moment) -> Option<&Lease> {
        let watched = self.leases.get_mut(&id)?;
        watched.renew_at = Some(now.after(watched.lease.terms.ttl / 20));
        self.enter(id);
        self.leases.get(&id).map(|watched| &*watched.lease)
    }

    /// The next thing to do at `now`.
    pub(crate) fn due(&mut self, now: Moment) -> Option<Due> {
        loop {
            let id = self.agenda.due(now)?;
            let watched = self.leases.get_mut(&id).expect("what is due is watched");
            if now >= watched.lease.deadline() {
                let is_over = watched.is_over();
                let Watched { lease, ends, .. } = self.remove(id)?;
                return Some(if is_over {
                    Due::Over(lease, ends)
                } else {
                    Due::Lapsed(lease, ends)
                });
            }
            if !watched.may_go_on() {
                watched.renew_at = Some(now.after(watched.pause(now)));
                self.enter(id);
                continue;
            }
            watched.renew_at = None;
            // Also if its answer is lost or late.
            watched.ends = watched.ends.max(now.after(watched.ttl));
            self.enter(id);
            return Some(Due::Renew(id));
        }
    }

    /// When [`due`](Self::due) will next have something.
    pub(crate) fn next_wakeup(&self) -> Option<Moment> {
        self.agenda.next()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.leases.is_empty()
    }

    /// Whether locks are held: limits of those who have joined one may outlive it.
    pub(crate) fn holds_locks(&self) -> bool {
        self.leases.values().any(|it| !it.lease.is_limit())
    }

    /// All leases.
    #[cfg(feature = "metrics")]
    pub(crate) fn leases(&self) -> impl Iterator<Item = &Arc<Lease>> {
        self.leases.values().map(|watched| &watched.lease)
    }

    /// Forgets all leases, and returns them with the moments when they end at the server.
    pub(crate) fn forget_all(&mut self) -> Vec<(Arc<Lease>, Moment)> {
        self.agenda.clear();
        self.leases
            .drain()
            .map(|(_, watched)| (watched.lease, watched.ends))
            .collect()
    }

    /// Moves a lease to its position in the agenda.
    fn enter(&mut self, id: LeaseId) {
        if let Some(watched) = self.leases.get_mut(&id) {
            self.agenda.remove(watched.at, id);
            watched.at = watched.next();
            self.agenda.insert(watched.at, id);
        }
    }
}

/// Without a driver nobody renews them, and nobody wakes the bodies under them at their deadlines.
impl Drop for Watchdog {
    fn drop(&mut self) {
        for (lease, _) in self.forget_all() {
            lease.end();
        }
    }
}

/// After a third of the ttl, give or take a tenth of that, so that locks that were taken
/// together are not renewed together for ever.
fn next_renewal(since: Moment, ttl: Duration) -> Moment {
    since.after((ttl / 3).mul_f64(0.9 + 0.2 * fastrand::f64()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::base::clock::Clock;
    use crate::held::home::Nowhere;
    use crate::types::terms::Terms;

    const TTL: Duration = Duration::from_secs(10);

    fn lease(renew: bool, granted: Duration) -> (Watchdog, Arc<Lease>, Moment) {
        let (watchdog, lease, now) = unreceived(renew, granted);
        lease.receive();
        (watchdog, lease, now)
    }

    /// One that no poll of its caller has received, granted for this time.
    fn unreceived(renew: bool, granted: Duration) -> (Watchdog, Arc<Lease>, Moment) {
        let clock = Clock::manual();
        let terms = Terms {
            renew,
            ..Terms::of(LeaseId(1), "k", TTL)
        };
        let (watchdog, lease) = granted_for(&clock, terms, granted);
        (watchdog, lease, clock.now())
    }

    fn granted_for(clock: &Clock, terms: Terms, ttl: Duration) -> (Watchdog, Arc<Lease>) {
        let (now, home) = (clock.now(), Arc::new(Nowhere));
        let ends = deadline(now, ttl);
        let lease = Lease::new(terms.into(), 1, now, ends, clock.clone(), home);
        let lease = Arc::new(lease);
        let mut watchdog = Watchdog::default();
        watchdog.watch(Arc::clone(&lease), now, now, ttl);
        (watchdog, lease)
    }

    // Section: guarantees.md#the-lock-goes-on
    #[test]
    fn a_lease_that_nobody_has_received_is_not_renewed() {
        let (mut watchdog, lease, _) = unreceived(true, TTL);
        let mut looks = 0;
        let (at, lapsed) = loop {
            let now = watchdog.next_wakeup().unwrap();
            if let Some(due) = watchdog.due(now) {
                break (now, due);
            }
            looks += 1;
        };
        assert!(matches!(lapsed, Due::Lapsed(..)), "{lapsed:?}");
        assert_eq!(at, lease.deadline());
        assert!((5..50).contains(&looks), "{looks}");
    }

    /// As one that was handed over by a push, or one on a session.
    #[test]
    fn a_lease_that_nobody_has_received_lasts_for_its_ttl() {
        for renewed in [TTL, TTL / 4] {
            let (mut watchdog, _, start) = unreceived(true, TTL / 4);
            let end = loop {
                let now = watchdog.next_wakeup().unwrap();
                match watchdog.due(now) {
                    None => {}
                    Some(Due::Renew(id)) => drop(watchdog.renewed(id, now, now, renewed)),
                    Some(_) => break now.since(start),
                }
            };
            assert!(end > TTL / 10 * 8 && end < TTL * 3 / 2, "{end:?}");
        }
    }

    #[test]
    fn a_lease_that_was_received_late_is_renewed_in_time() {
        let (mut watchdog, lease, _) = unreceived(true, TTL);
        let margin = TTL / 50;
        loop {
            let now = watchdog.next_wakeup().unwrap();
            if lease.deadline().since(now) < margin {
                lease.receive();
            }
            match watchdog.due(now) {
                None => {}
                Some(due) => break assert!(matches!(due, Due::Renew(_)), "{due:?}"),
            }
        }
    }

    /// However late it is delivered, a look follows in time for a renewal.
    #[test]
    fn a_brief_lease_that_is_delivered_late_is_renewed_in_time() {
        const TTL: Duration = Duration::from_millis(100);
        // Renewals come at random.
        for delivered in (1..150).cycle().take(3_000) {
            let (clock, delivered) = (Clock::manual(), Duration::from_millis(delivered));
            let (mut watchdog, lease) = granted_for(&clock, Terms::of(LeaseId(1), "k", TTL), TTL);
            let at = clock.now().after(delivered);
            while let Some(wakeup) = watchdog.next_wakeup().filter(|it| *it < at) {
                if let Some(Due::Renew(id)) = watchdog.due(wakeup) {
                    watchdog.renewed(id, wakeup, wakeup, TTL);
                }
            }
            clock.advance(delivered);
            if !lease.is_held() || lease.is_late() {
                continue;
            }
            lease.receive();
            let next = watchdog.next_wakeup().unwrap();
            let due = watchdog.due(next);
            assert!(matches!(due, Some(Due::Renew(_))), "{delivered:?}: {due:?}");
        }
    }

    #[test]
    fn leases_end_with_their_driver() {
        let (watchdog, lease, now) = lease(true, TTL);
        assert!(lease.deadline() > now);
        drop(watchdog);
        assert!(lease.deadline() <= now);
    }

    #[test]
    fn a_lease_is_renewed_after_a_third_of_its_ttl() {
        for _ in 0..100 {
            let (mut watchdog, _, start) = lease(true, TTL);
            let at = watchdog.next_wakeup().unwrap();
            let third = at.since(start).as_secs_f64() / TTL.as_secs_f64();
            assert!((0.299..=0.368).contains(&third), "{third}");
            assert!(watchdog.due(start.after(TTL / 4)).is_none());
            assert!(matches!(watchdog.due(at), Some(Due::Renew(LeaseId(1)))));
            assert!(watchdog.due(at).is_none(), "one renewal at a time");
        }
    }

    #[test]
    fn a_failed_renewal_is_tried_again_until_the_deadline() {
        let (mut watchdog, held, start) = lease(true, TTL);
        let mut tries = 0;
        let now = loop {
            let now = watchdog.next_wakeup().unwrap();
            match watchdog.due(now) {
                Some(Due::Renew(id)) => assert!(watchdog.retry(id, now).is_some()),
                Some(Due::Lapsed(..)) => break now,
                Some(Due::Over(..)) => panic!("it was to be renewed"),
                None => unreachable!("something was due"),
            }
            tries += 1;
        };
        assert_eq!(now, deadline(start, TTL));
        assert!(tries > 10, "{tries}");
        assert!(watchdog.is_empty());
        assert_eq!(held.deadline(), now);
    }

    #[test]
    fn a_renewal_without_an_answer_may_have_given_what_was_granted() {
        for (granted, longest) in [(2 * TTL, 2 * TTL), (TTL, TTL), (TTL / 4, TTL)] {
            let (mut watchdog, ..) = lease(true, granted);
            let asked = watchdog.next_wakeup().unwrap();
            assert!(matches!(watchdog.due(asked), Some(Due::Renew(_))));
            let end = watchdog.next_wakeup().unwrap();
            let Some(Due::Lapsed(_, ends)) = watchdog.due(end) else {
                panic!("its deadline has passed");
            };
            assert_eq!(ends, asked.after(longest));
        }
    }

    #[test]
    fn a_renewal_counts_from_before_it_was_sent_and_never_revives() {
        let (mut watchdog, held, start) = lease(true, TTL);
        let sent = start.after(TTL / 3);
        watchdog.renewed(LeaseId(1), sent.after(TTL / 4), sent, TTL);
        assert_eq!(held.deadline(), deadline(sent, TTL));

        let late = sent.after(TTL);
        watchdog.renewed(LeaseId(1), late, late, TTL);
        assert_eq!(held.deadline(), deadline(sent, TTL));
        assert!(matches!(watchdog.due(late), Some(Due::Lapsed(..))));
    }

    // Section: guarantees.md#no-poll-of-the-body-starts-after-its-deadline
    #[test]
    fn a_lease_ends_at_the_server_when_its_last_renewal_would() {
        for is_answered in [true, false] {
            let (mut watchdog, _, start) = lease(true, TTL);
            let sent = watchdog.next_wakeup().unwrap();
            assert!(matches!(watchdog.due(sent), Some(Due::Renew(_))));
            let late = start.after(TTL);
            if is_answered {
                let renewed = watchdog.renewed(LeaseId(1), late, sent, TTL);
                assert!(renewed.is_none(), "too late");
            }
            let Some(Due::Lapsed(_, ends)) = watchdog.due(late) else {
                panic!("its deadline has passed");
            };
            assert_eq!(ends, sent.after(TTL), "answered: {is_answered}");
        }
    }

    #[test]
    fn a_fixed_lease_is_not_renewed_unless_it_was_granted_for_less() {
        let (mut watchdog, _, start) = lease(false, TTL);
        assert!(matches!(
            watchdog.due(start.after(TTL)),
            Some(Due::Over(..))
        ));

        let (mut watchdog, held, start) = lease(false, Duration::from_secs(3));
        let half = start.after(held.deadline().since(start) / 2);
        assert!(matches!(watchdog.due(half), Some(Due::Renew(_))));
        watchdog.renewed(LeaseId(1), half, half, TTL);
        let end = deadline(half, TTL).min(start.after(TTL));
        assert_eq!(watchdog.next_wakeup(), Some(end), "once is enough");
        assert_eq!(end, start.after(TTL), "it lasts for its ttl and no longer");
        assert!(matches!(watchdog.due(end), Some(Due::Over(..))));

        // Its one renewal fails.
        let (mut watchdog, held, _) = lease(false, Duration::from_secs(3));
        let at = watchdog.next_wakeup().unwrap();
        assert!(matches!(watchdog.due(at), Some(Due::Renew(_))));
        watchdog.retry(LeaseId(1), at);
        assert!(matches!(
            watchdog.due(held.deadline()),
            Some(Due::Lapsed(..))
        ));
    }

    #[test]
    fn a_fixed_lease_on_a_store_that_grants_less_is_renewed_until_its_end() {
        let short = TTL / 4;
        let (mut watchdog, held, start) = lease(false, short);
        let mut renewals = 0;
        let end = loop {
            let now = watchdog.next_wakeup().unwrap();
            match watchdog.due(now) {
                Some(Due::Renew(id)) => drop(watchdog.renewed(id, now, now, short)),
                _ => break now,
            }
            renewals += 1;
        };
        assert_eq!(end, start.after(TTL));
        assert!(held.is_final() && renewals > 4, "{renewals}");
    }

    #[test]
    fn a_fixed_lease_on_a_session_that_began_before_it_is_renewed_until_its_end() {
        let clock = Clock::manual();
        let began = clock.now();
        let granted = began.after(TTL / 2);
        let terms = Terms {
            renew: false,
            ..Terms::of(LeaseId(1), "k", TTL)
        };
        let ends = deadline(began, TTL);
        let home = Arc::new(Nowhere);
        let held = Arc::new(Lease::new(terms.into(), 1, granted, ends, clock, home));
        held.receive();
        let mut watchdog = Watchdog::default();
        watchdog.watch(Arc::clone(&held), granted, began, TTL);
        let end = loop {
            let now = watchdog.next_wakeup().unwrap();
            match watchdog.due(now) {
                Some(Due::Renew(id)) => drop(watchdog.renewed(id, now, now, TTL)),
                _ => break now,
            }
        };
        assert_eq!(end, granted.after(TTL));
    }

    #[test]
    fn a_lease_whose_deadline_is_the_last_is_not_renewed() {
        let clock = Clock::manual();
        let start = clock.now();
        let terms = Terms {
            max_hold: Some(TTL),
            ..Terms::of(LeaseId(1), "k", TTL)
        };
        let ends = deadline(start, TTL);
        let home = Arc::new(Nowhere);
        let lease = Arc::new(Lease::new(terms.into(), 1, start, ends, clock, home));
        lease.receive();
        let mut watchdog = Watchdog::default();
        watchdog.watch(Arc::clone(&lease), start, start, TTL);
        let at = watchdog.next_wakeup().unwrap();
        assert!(matches!(watchdog.due(at), Some(Due::Renew(_))));
        watchdog.renewed(LeaseId(1), at, at, TTL);
        assert!(lease.is_final());
        assert_eq!(watchdog.next_wakeup(), Some(start.after(TTL)));
        assert!(matches!(
            watchdog.due(start.after(TTL)),
            Some(Due::Over(..))
        ));
    }

    #[test]
    fn what_was_released_is_forgotten() {
        let (mut watchdog, _, start) = lease(true, TTL);
        assert!(!watchdog.is_empty());
        assert!(watchdog.forget(LeaseId(1)).is_some());
        assert!(watchdog.is_empty());
        watchdog.renewed(LeaseId(1), start, start, TTL);
        assert!(watchdog.retry(LeaseId(1), start).is_none());
        assert!(watchdog.due(start.after(TTL)).is_none());
        assert!(watchdog.next_wakeup().is_none());
    }

    #[test]
    fn all_can_be_forgotten_at_once() {
        let (mut watchdog, held, _) = lease(true, TTL);
        let all = watchdog.forget_all();
        assert!(matches!(&all[..], [(lease, _)] if Arc::ptr_eq(lease, &held)));
        assert!(watchdog.is_empty());
        assert!(watchdog.next_wakeup().is_none());
    }
}
