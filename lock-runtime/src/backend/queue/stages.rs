//! What each stage of a claim asks for, and the steps from one stage to the next.

use std::sync::Arc;
use std::time::Duration;

use super::claim::{Downgrade, Renewal, Stage};
use super::protocol::ahead::Ahead;
use super::protocol::call::{Bearer, Call, Sent};
use super::protocol::step::Step;
use super::protocol::trouble::Trouble;
use super::{PAUSE, Queue};
use crate::backend::Outcome;
use crate::backend::claims::UNCONFIRMED;
use crate::base::clock::Moment;
use crate::types::deadline::deadline;
use crate::types::error::Cause;
use crate::types::terms::LeaseId;

impl<S: Step> Queue<S> {
    /// Sends what the stage of a claim asks for.
    pub(super) fn retry(&mut self, now: Moment, id: LeaseId) {
        let company = self.company(id);
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        let forbidden = claim.forbidden;
        if forbidden.is_some_and(|until| now >= until) {
            return self.forget(id);
        }
        let quarantine = self.quarantines.of(&claim.bearer.terms.key);
        let (call, until) = match claim.stage {
            Stage::Unsent | Stage::Unsure
                if claim.is_unsent() && self.down.is_none() && quarantine.is_none() =>
            {
                claim.stage = Stage::Acquiring;
                claim.since = now;
                if claim.bearer.terms.adopts.is_none() {
                    self.last_joined = Some(id);
                }
                let call = Call::Acquire {
                    bearer: claim.acquirer(),
                    position: claim.position,
                    company,
                };
                (call, None)
            }
            Stage::Leaving { until } => {
                if let Some(quarantine) = quarantine {
                    self.claims.schedule(quarantine.ends, id);
                    let result = Ok(false);
                    return self.claims.report(Outcome::Released { id, result });
                }
                let call = Call::Leave(claim.bearer.clone());
                if now >= until {
                    let result = Err(self.no_answer());
                    self.claims.report(Outcome::Released { id, result });
                }
                (call, Some(until))
            }
            Stage::Issuing { until, .. } if now >= until => {
                let cause = self.no_answer();
                return self.released(id, Err(cause));
            }
            Stage::Issuing { until, .. } if claim.downgrade == Some(Downgrade::Asked) => {
                if let Some(quarantine) = quarantine {
                    return self.claims.schedule(quarantine.ends.min(until), id);
                }
                (Call::Downgrade(claim.bearer.clone()), Some(until))
            }
            Stage::Issuing {
                ticket,
                ends,
                until,
            } => {
                let call = Call::Issue {
                    bearer: claim.bearer.clone(),
                    ticket,
                    time: ends.since(now),
                };
                (call, Some(until))
            }
            Stage::Releasing { until, .. } if now >= until => {
                let cause = self.no_answer();
                return self.released(id, Err(cause));
            }
            Stage::Releasing { until, cools_until } => {
                let (bearer, cooldown) = (claim.bearer.clone(), cools_until.since(now));
                let call = match quarantine {
                    Some(_) => Call::Shorten {
                        bearer,
                        left: cooldown,
                    },
                    None => Call::Release {
                        bearer,
                        cooldown,
                        crowded: claim.crowded,
                        noted: claim.noted,
                    },
                };
                (call, Some(until))
            }
            Stage::Held { .. } if claim.downgrade == Some(Downgrade::Asked) => {
                if let Some(quarantine) = quarantine {
                    return self.claims.schedule(quarantine.ends, id);
                }
                (Call::Downgrade(claim.bearer.clone()), None)
            }
            Stage::Passing { fence, since, ttl } => {
                // Which shows, too, whether it is ours.
                self.renew_for_now(now, id);
                return self.pass(now, id, fence, since, ttl);
            }
            _ => return,
        };
        if self.down.is_none() {
            return self.send(now, call);
        }
        for end in [until, forbidden].into_iter().flatten() {
            if now < end {
                self.claims.schedule(end, id);
            }
        }
    }

    /// Reports a grant at once, or renews it first if little is left of its lease.
    pub(super) fn enter(
        &mut self,
        now: Moment,
        id: LeaseId,
        fence: u64,
        since: Moment,
        ttl: Duration,
    ) {
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        let ttl = claim.counted(ttl);
        self.waiters.leave(&claim.bearer.terms.key, id);
        if deadline(since, ttl).since(now) >= ttl / 2 {
            self.granted(now, id, fence, since, ttl);
        } else {
            self.confirm(now, id, fence);
        }
    }

    /// A renewal is to show that the lock is ours.
    pub(super) fn confirm(&mut self, now: Moment, id: LeaseId, fence: u64) {
        if let Some(claim) = self.claims.get_mut(&id) {
            self.waiters.leave(&claim.bearer.terms.key, id);
            claim.stage = Stage::Confirming { fence };
            self.renew_for_now(now, id);
        }
    }

    /// The lock is ours, unless the server has to know who of a chain has it, or replicas have to
    /// confirm it first.
    pub(super) fn granted(
        &mut self,
        now: Moment,
        id: LeaseId,
        fence: u64,
        since: Moment,
        ttl: Duration,
    ) {
        match (self.claims.get_mut(&id), &mut self.replicas) {
            (Some(claim), _) if claim.unknown => self.pass(now, id, fence, since, ttl),
            (Some(claim), Some(replicas)) => {
                claim.stage = Stage::Replicating { fence };
                replicas.add(claim.bearer.clone(), since, ttl);
            }
            _ => self.hold(now, id, fence, since, ttl),
        }
    }

    /// The lock is ours for `ttl` from `since`.
    pub(super) fn hold(
        &mut self,
        now: Moment,
        id: LeaseId,
        fence: u64,
        since: Moment,
        ttl: Duration,
    ) {
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        let granted = now;
        // A part gets the number of its acquisition once a majority has granted the lock.
        let number = if claim.is_part { 0 } else { fence };
        claim.stage = Stage::Held {
            fence: number,
            granted,
        };
        claim.lease = (since, ttl);
        let leads = claim.bearer.terms.data.is_some() && !claim.is_part;
        let token = Some(claim.bearer.token.number());
        self.claims.report(Outcome::Granted {
            id,
            fence,
            token,
            since,
            ttl,
        });
        if leads && !self.passes {
            // Its note shows observers a leader that stops before its first renewal is due.
            self.renew(now, id);
        }
    }

    /// It is held for `ttl` from `since`.
    pub(super) fn renewed(&mut self, id: LeaseId, since: Moment, ttl: Duration) {
        if let Some(claim) = self.claims.get_mut(&id) {
            claim.lease = (since, ttl);
            claim.renewal = Renewal::Done;
        }
        self.claims.report(Outcome::Renewed { id, since, ttl });
    }

    /// It was held, and is not ours any more.
    pub(super) fn lost(&mut self, now: Moment, id: LeaseId) {
        self.claims.report(Outcome::NotHeld { id });
        if let Some(claim) = self.claims.get(&id) {
            self.lose_chain(now, claim.bearer.token);
        }
    }

    /// The token is of no use any more. A fresh one takes its position in the queue.
    pub(super) fn start_over(&mut self, now: Moment, id: LeaseId) {
        let Some(claim) = self.claims.get(&id) else {
            return;
        };
        let (old, is_part) = (claim.bearer.token, claim.is_part);
        let token = if is_part {
            Ok(old.sibling())
        } else {
            self.claims.tokens.next()
        };
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        let Ok(token) = token else {
            if matches!(claim.stage, Stage::Chained { .. }) {
                // It learns that it is gone when it asks.
                let bearer = claim.bearer.clone();
                self.unsure(&bearer, now.after(PAUSE));
            }
            self.claims.schedule(now.after(PAUSE), id);
            return;
        };
        self.waiters.leave(&claim.bearer.terms.key, id);
        self.ids.remove(&old);
        self.ids.insert(token, id);
        claim.bearer = Bearer::new(token, Arc::clone(&claim.bearer.terms));
        claim.stage = Stage::Unsent;
        claim.fence = None;
        claim.unknown = false;
        claim.noted = false;
        claim.renewals = 0;
        claim.renewal = Renewal::Done;
        claim.may_be_cut = false;
        claim.is_stray = false;
        self.lose_chain(now, old);
    }

    /// Something is in the way of an acquisition, for now or for good.
    pub(super) fn trouble(&mut self, id: LeaseId, trouble: &Trouble) {
        let cause = trouble.cause();
        if !matches!(trouble, Trouble::Never(_)) {
            let soon = matches!(trouble, Trouble::Unknown(_));
            let outcome = Outcome::Trouble { id, cause, soon };
            self.claims.report(outcome);
            return;
        }
        let failed = Outcome::Failed { id, cause };
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        if claim.stage == Stage::Unsent {
            return self.retire(failed);
        }
        // It may be in the queue all the same.
        self.waiters.leave(&claim.bearer.terms.key, id);
        let (chain, at) = (claim.bearer.token, claim.since);
        claim.leave(at);
        let call = Call::Leave(claim.bearer.clone());
        if self.down.is_none() {
            self.calls.push(Sent::new(call, at));
        }
        self.claims.report(failed);
        self.lose_chain(at, chain);
    }

    pub(super) fn waits(&mut self, id: LeaseId, ahead: &Ahead) {
        let holder = Some(Box::new(ahead.holder()));
        self.claims.report(Outcome::Waiting { id, holder });
    }

    /// Why a release has no answer.
    fn no_answer(&self) -> Cause {
        let said = || Trouble::not_now(UNCONFIRMED);
        self.down.clone().unwrap_or_else(said).cause()
    }

    /// It is not ours any more, or never was; whether it was until now.
    pub(super) fn released(&mut self, id: LeaseId, result: Result<bool, Cause>) {
        self.retire(Outcome::Released { id, result });
    }

    /// Forgets a claim that ends with this outcome.
    pub(super) fn retire(&mut self, outcome: Outcome) {
        if let Some(claim) = self.claims.retire(outcome) {
            self.forget_token(&claim.bearer);
        }
    }

    pub(super) fn forget(&mut self, id: LeaseId) {
        if let Some(claim) = self.claims.remove(&id) {
            self.forget_token(&claim.bearer);
        }
    }

    /// Only the server knows its position; it is asked `at` that moment.
    pub(super) fn unsure(&mut self, bearer: &Bearer, at: Moment) {
        if let Some(claim) = self.claim(bearer) {
            claim.stage = Stage::Unsure;
            let (bearer, acquires_again) = (claim.bearer.clone(), claim.acquires_again());
            if acquires_again {
                self.claims.schedule(at, bearer.terms.id);
            } else {
                self.waiters.join_later(&bearer, at);
            }
        }
    }
}
