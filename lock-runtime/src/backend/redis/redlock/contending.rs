//! Judges the answers while a lock is acquired: a majority is ours, may become
//! ours, or is left to others.

use std::time::Duration;

use super::claim::{Grant, Part, Stage};
use super::coordinator::Coordinator;
use crate::backend::Outcome;
use crate::backend::queue::order::Order;
use crate::base::clock::Moment;
use crate::types::terms::LeaseId;

/// How long servers that have not answered may keep others from locks that were granted.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(20);
/// The pause before what came back is yielded again; it doubles from time to time.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(200);

impl Coordinator {
    /// Whether a majority is ours, may become ours, or has to be left to others.
    pub(super) fn contend(&mut self, now: Moment, id: LeaseId) {
        let Some(claim) = self.claims.get(&id) else {
            return;
        };
        let majority = claim.majority();
        if claim.valid(now).count() >= majority {
            return self.number(now, id);
        }
        let (is_try, partial) = (claim.terms.wait.is_try(), claim.grants().count());
        let short = claim.is_short();
        if short && claim.has_heard_majority() {
            let (holder, named) = claim.holder();
            if is_try && named >= majority {
                return self.busy(id);
            }
            // One that tries once would hear that it is held.
            if !is_try {
                let holder = holder.cloned().map(Box::new);
                self.claims.report(Outcome::Waiting { id, holder });
            }
        }
        if partial > 0 || (is_try && short) {
            self.contest(now, id, short);
        }
    }

    /// A server has granted it. The others are waited for as long as this one has needed, and
    /// a little longer: they may all be far away.
    pub(super) fn granted(&mut self, now: Moment, server: usize, id: LeaseId, mut grant: Grant) {
        let claim = self.claims.get(&id);
        let needed = match claim.map(|claim| &claim.parts[server]) {
            Some(Part::Asked(at)) => now.since(*at).min(LONGEST_PAUSE),
            _ => Duration::ZERO,
        };
        grant.kept = now.after(needed + ANSWER_TIMEOUT);
        self.note(now, server, id, Part::Granted(grant));
    }

    /// Yields grants that are too few for a majority to the acquisition ahead. If they cannot become a
    /// majority, it yields at once, and after growing pauses if they come back, since then nobody is
    /// ahead. Otherwise it waits until the remaining servers have had their time to answer.
    fn contest(&mut self, now: Moment, id: LeaseId, short: bool) {
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        let kept = claim.grants().map(|(_, grant)| grant.kept).max();
        let at = match (short, kept) {
            (true, Some(_)) if claim.rounds == 0 => now,
            (true, _) => {
                let pause = FIRST_PAUSE * 2_u32.pow(claim.rounds.min(6));
                now.after(pause.min(LONGEST_PAUSE).min(claim.terms.ttl / 3))
            }
            (false, kept) => kept.unwrap_or(now),
        };
        if short {
            self.claims.schedule(at, id);
        } else {
            self.claims.reschedule(Some(at), id);
        }
    }

    /// Lets go of some parts, and waits in those queues again, by so many µs ahead of its first position.
    pub(super) fn yield_parts(
        &mut self,
        now: Moment,
        id: LeaseId,
        lead: u64,
        is: impl Fn(usize, &Part) -> bool,
    ) {
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        let position = claim.position.saturating_sub(lead);
        for (server, part) in claim.parts.iter_mut().enumerate() {
            if is(server, part) {
                *part = Part::Asked(now);
                self.orders.push((server, Order::Yield { id, position }));
            }
        }
    }

    /// Brings a majority to the largest of its fences, so that every later majority meets a
    /// server that has gone on from there.
    pub(super) fn number(&mut self, now: Moment, id: LeaseId) {
        self.claims.reschedule(None, id);
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        let fence = match claim.stage {
            Stage::Raising { fence } => fence,
            _ => claim.valid(now).map(|(_, it)| it.fence).max().unwrap_or(0),
        };
        if let Some(last) = claim.last_of_majority(now, fence) {
            claim.stage = Stage::Held {
                fence,
                granted: now,
                renewing: None,
            };
            let (since, ttl) = (last.since, last.ttl);
            let numbered = claim.grants().map(|(server, _)| server);
            let numbered = numbered.map(|server| (server, Order::Number { id, fence }));
            self.orders.extend(numbered);
            return self.claims.report(Outcome::Granted {
                id,
                fence,
                token: None,
                since,
                ttl,
            });
        }
        if claim.valid(now).count() < claim.majority() {
            claim.stage = Stage::Acquiring;
            return self.contend(now, id);
        }
        claim.stage = Stage::Raising { fence };
        for server in 0..self.servers {
            self.raise(server, id, fence);
        }
    }

    /// Brings a server to a fence, if it has granted us the lock with a smaller one.
    fn raise(&mut self, server: usize, id: LeaseId, fence: u64) {
        let claim = self.claims.get_mut(&id);
        let grant = claim.and_then(|claim| claim.grant(server));
        if let Some(grant) = grant.filter(|it| it.fence < fence && it.asked.is_none()) {
            grant.asked = Some(fence);
            self.orders.push((server, Order::Raise { id, fence }));
        }
    }
}
