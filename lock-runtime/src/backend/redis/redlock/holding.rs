//! Renews and releases locks that a majority has granted.

use std::time::Duration;

use super::claim::{Claim, Part, Renewing, Stage};
use super::coordinator::Coordinator;
use crate::backend::queue::order::Order;
use crate::backend::{Outcome, Request};
use crate::base::clock::Moment;
use crate::types::error::Cause;
use crate::types::terms::LeaseId;

/// By how many µs a holder is ahead of its first position where it waits again. A process knows the servers' clocks only to
/// within a round trip, so one that joined later may have an earlier position.
const LEAD: u64 = 10_000_000;

impl Coordinator {
    /// A server has granted a lock that is held already, and may end it earlier than the others.
    pub(super) fn joined(&mut self, now: Moment, server: usize, id: LeaseId, fence: u64) {
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        let lasts = claim.last_of_majority(now, 0);
        let lasts = lasts.map_or(Duration::ZERO, |it| it.deadline().since(now));
        if let Some(grant) = claim.grant(server)
            && grant.asked.is_none()
            && (grant.fence < fence || grant.deadline().since(now) < lasts / 2)
        {
            grant.asked = Some(fence);
            self.orders.push((server, Order::Raise { id, fence }));
        }
        self.orders.push((server, Order::Number { id, fence }));
        self.watch(now, id, None);
    }

    pub(super) fn renew(&mut self, now: Moment, id: LeaseId) {
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        let Stage::Held { renewing, .. } = &mut claim.stage else {
            return;
        };
        *renewing = Some(Renewing {
            started: now,
            failed: false,
        });
        for (server, part) in claim.parts.iter_mut().enumerate() {
            if let Part::Granted(grant) = part {
                grant.asked.get_or_insert(0);
                let order = Order::Plain(Request::Renew(id));
                self.orders.push((server, order));
            }
        }
    }

    pub(super) fn renewed(
        &mut self,
        now: Moment,
        server: usize,
        id: LeaseId,
        since: Moment,
        ttl: Duration,
    ) {
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        if let Some(grant) = claim.grant(server) {
            // Another fence may be wanted by now.
            let raised = grant.asked.take().unwrap_or(0);
            (grant.since, grant.ttl) = (since, ttl);
            grant.fence = grant.fence.max(raised);
        }
        self.go_on(now, id, None);
    }

    pub(super) fn renew_failed(&mut self, now: Moment, server: usize, id: LeaseId, cause: Cause) {
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        if let Some(grant) = claim.grant(server) {
            grant.asked = None;
            if let Stage::Raising { .. } = claim.stage {
                self.yield_parts(now, id, 0, |it, _| it == server);
            }
        }
        self.go_on(now, id, Some(cause));
    }

    /// A server says that it is not ours there any more.
    pub(super) fn not_held(&mut self, now: Moment, server: usize, id: LeaseId) {
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        if claim.grant(server).is_none() {
            return;
        }
        match claim.stage {
            Stage::Held { .. } => claim.parts[server] = Part::Lost,
            _ => self.yield_parts(now, id, 0, |it, _| it == server),
        }
        self.go_on(now, id, None);
    }

    fn go_on(&mut self, now: Moment, id: LeaseId, cause: Option<Cause>) {
        match self.claims.get(&id).map(|claim| &claim.stage) {
            Some(Stage::Acquiring) => self.contend(now, id),
            Some(Stage::Raising { .. }) => self.number(now, id),
            Some(Stage::Held { .. }) => self.watch(now, id, cause),
            Some(Stage::Leaving) | None => {}
        }
    }

    /// Whether a renewal, if one is on its way, has reached a majority of all servers, and
    /// whether so many have denied it that none is left.
    fn watch(&mut self, now: Moment, id: LeaseId, cause: Option<Cause>) {
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        if claim.denied() >= claim.minority() {
            return self.claims.report(Outcome::NotHeld { id });
        }
        let (majority, last) = (claim.majority(), claim.last_of_majority(now, 0));
        let Stage::Held { renewing, .. } = &mut claim.stage else {
            return;
        };
        let Some(renewal) = renewing else {
            return;
        };
        let started = renewal.started;
        let fresh = |part: &Part| matches!(part, Part::Granted(it) if it.since >= started);
        let asked = |part: &Part| matches!(part, Part::Granted(it) if it.asked.is_some());
        let renewed = claim.parts.iter().filter(|it| fresh(it)).count() >= majority;
        match last {
            Some(last) if renewed => {
                *renewing = None;
                let (since, ttl) = (last.since, last.ttl);
                self.claims.report(Outcome::Renewed { id, since, ttl });
                // As from a server that was restarted. It comes back as soon as those who wait yield it.
                self.yield_parts(now, id, LEAD, |_, part| matches!(part, Part::Lost));
            }
            _ if !renewal.failed && !claim.parts.iter().any(asked) => {
                renewal.failed = true;
                let cause = cause.unwrap_or_else(|| Claim::too_few().cause());
                self.claims.report(Outcome::RenewFailed { id, cause });
            }
            _ => {}
        }
    }

    pub(super) fn release(&mut self, now: Moment, id: LeaseId) {
        let cools_until = self.claims.get(&id).map(|claim| match claim.stage {
            Stage::Held { granted, .. } => now.after(claim.terms.cooldown(granted, now)),
            _ => now,
        });
        self.leave(id, cools_until);
    }

    /// Tells all servers that nobody wants it any more.
    pub(super) fn leave(&mut self, id: LeaseId, cools_until: Option<Moment>) {
        self.claims.reschedule(None, id);
        let Some(claim) = self.claims.get_mut(&id) else {
            let result = Ok(false);
            return self.claims.report(Outcome::Released { id, result });
        };
        claim.stage = Stage::Leaving;
        for (server, part) in claim.parts.iter_mut().enumerate() {
            let order = match (&part, cools_until) {
                // The server's queue has ended it.
                (Part::Failed, _) => {
                    *part = Part::Left(Some(Ok(false)));
                    continue;
                }
                (Part::Granted(_), Some(cools_until)) => Order::Release { id, cools_until },
                _ => Order::Plain(Request::Abandon(id)),
            };
            *part = Part::Left(None);
            self.orders.push((server, order));
        }
    }

    pub(super) fn left(&mut self, server: usize, id: LeaseId, result: Result<bool, Cause>) {
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        if let Part::Left(answer) = &mut claim.parts[server] {
            *answer = Some(result);
        }
        if let Some(result) = claim.ending() {
            self.claims.retire(Outcome::Released { id, result });
        }
    }
}
