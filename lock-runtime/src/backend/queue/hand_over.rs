//! How a chain begins, hands its lock over, and ends.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::claim::{Claim, Stage};
use super::protocol::call::{Bearer, Call, Company};
use super::protocol::step::Step;
use super::{CLAIM_TTL, Queue};
use crate::backend::Outcome;
use crate::backend::name;
use crate::backend::token::Token;
use crate::base::clock::Moment;
use crate::types::deadline::deadline;
use crate::types::key::LockKey;
use crate::types::kind::Kind;
use crate::types::terms::LeaseId;

/// How many followers a holder names.
const MOST_NAMED: usize = 100;

impl<S: Step> Queue<S> {
    /// Puts those who wait behind `first`, under the numbers behind its own, and returns
    /// the latest moment before which one of them joined: nobody is taken out of the queue
    /// before all have joined it.
    pub(super) fn form_chain(
        &mut self,
        first: LeaseId,
        fence: u64,
        followers: &[Token],
    ) -> Option<Moment> {
        let claim = self.claims.get_mut(&first)?;
        claim.fence = Some(fence);
        let (chain, name) = (claim.bearer.token, Arc::clone(&claim.bearer.name));
        let key = claim.bearer.terms.key.clone();
        let mut ids = VecDeque::with_capacity(followers.len());
        let mut latest = None;
        // A forged number may be the largest.
        let fences = (1..).map(|place| fence.saturating_add(place));
        for (token, fence) in followers.iter().zip(fences) {
            let Some(&id) = self.ids.get(token) else {
                continue;
            };
            let Some(claim) = self.claims.get_mut(&id).filter(|it| it.is_in_queue()) else {
                continue;
            };
            let stage = std::mem::replace(&mut claim.stage, Stage::Chained { chain });
            claim.fence = Some(fence);
            claim.crowded = true;
            latest = latest.max(Some(claim.since));
            // It waits, whatever the driver has heard of it before.
            if stage != Stage::Waiting {
                let holder = Some(Box::new(name::holder(&name, None)));
                self.claims.report(Outcome::Waiting { id, holder });
            }
            self.waiters.leave(&key, id);
            ids.push_back(id);
        }
        if !ids.is_empty() {
            self.chains.insert(chain, key, ids);
        }
        latest
    }

    /// Queues those again who are handed a lock with another one that cannot hand it over.
    pub(super) fn queue_again(&mut self, now: Moment, followers: &[Token]) {
        for token in followers {
            let id = self.ids.get(token).copied();
            let claim = id.and_then(|id| self.claims.get(&id));
            if let (Some(id), Some(claim)) = (id, claim)
                && claim.is_in_queue()
            {
                self.start_over(now, id);
                self.claims.schedule(now, id);
            }
        }
    }

    /// Hands the lock over from `id`, which does not want it any more, to the next in its
    /// chain; `false` if nobody follows.
    pub(super) fn hand_over(&mut self, now: Moment, id: LeaseId) -> bool {
        let Some(claim) = self.claims.get(&id) else {
            return false;
        };
        let (held, renewals) = (claim.is_held(), claim.renewals);
        let (noted, may_be_cut) = (claim.noted, claim.may_be_cut);
        let (since, ttl) = claim.lease;
        let Bearer { token, name, .. } = claim.bearer.clone();
        let claims = &self.claims;
        let follows = |id| claims.get(&id).is_some_and(|it| it.follows(token));
        let Some(next) = self.chains.next(token, follows) else {
            return false;
        };
        let left = deadline(since, ttl).since(now);
        self.released(id, Ok(held && !left.is_zero()));
        let Some(claim) = self.claims.get_mut(&next) else {
            return false;
        };
        self.ids.remove(&claim.bearer.token);
        self.ids.insert(token, next);
        let terms = Arc::clone(&claim.bearer.terms);
        let fixed = (!terms.renew).then(|| terms.ttl.saturating_sub(Duration::from_millis(1)));
        claim.bearer = Bearer { terms, token, name };
        claim.renewals = renewals;
        claim.noted = noted;
        claim.may_be_cut = may_be_cut;
        claim.unknown = self.passes;
        let fence = claim.fence.unwrap_or_default();
        let short = ttl.min(CLAIM_TTL);
        if !held || left < short / 2 {
            self.confirm(now, next, fence);
            return true;
        }
        // A fixed lease lasts for all of its ttl: a renewal restores it.
        let ttl = fixed.map_or(ttl, |most| ttl.min(most));
        self.enter_as_next(now, next, fence, since, ttl);
        let renewed = self.is_being_renewed(renewals, token);
        if left < short / 4 * 3 && !renewed && self.chains.goes_on(token) {
            // In good time, so that nobody has to wait for it.
            self.renew_for_now(now, next);
        } else if noted {
            // The note under this token is that of the holder before.
            self.renew(now, next);
        }
        true
    }

    /// The lock is handed over to a claim, which holds it once the server knows.
    fn enter_as_next(
        &mut self,
        now: Moment,
        id: LeaseId,
        fence: u64,
        since: Moment,
        ttl: Duration,
    ) {
        if self.passes {
            self.pass(now, id, fence, since, ttl);
        } else {
            self.hold(now, id, fence, since, ttl);
        }
    }

    /// The server is to know who of a chain holds the lock.
    pub(super) fn pass(
        &mut self,
        now: Moment,
        id: LeaseId,
        fence: u64,
        since: Moment,
        ttl: Duration,
    ) {
        if let Some(claim) = self.claims.get_mut(&id) {
            claim.stage = Stage::Passing { fence, since, ttl };
            let bearer = claim.bearer.clone();
            self.send(now, Call::Pass { bearer, fence });
        }
    }

    /// Renews a lock that is to be handed over for no longer than a grant lasts, which is what
    /// the others lose if this process stops. Behind a longer renewal on its way it would
    /// cut the lease that this one gives.
    pub(super) fn renew_for_now(&mut self, now: Moment, id: LeaseId) {
        let Some(claim) = self.claims.get(&id) else {
            return;
        };
        let token = claim.bearer.token;
        let renewed = self.is_being_renewed(claim.renewals, token);
        let bearer = if !renewed && self.chains.goes_on(token) {
            claim.bearer.at_most(CLAIM_TTL)
        } else {
            claim.bearer.clone()
        };
        self.send_renewal(now, bearer);
    }

    /// The bearer of a renewal that is sent again: for the full ttl if later calls have extended the lease for longer than
    /// it would, or may have. `others` more renewals are on their way.
    pub(super) fn renews_again(&self, now: Moment, bearer: &Bearer, others: u32) -> Bearer {
        let is_same = |claim: &&Claim| claim.bearer.terms.kind == bearer.terms.kind;
        let Some(claim) = self.claim_of(bearer.token).filter(is_same) else {
            return bearer.clone();
        };
        let (since, ttl) = claim.counted_lease();
        let cuts = deadline(since, ttl) > deadline(now, bearer.terms.ttl);
        if cuts || self.is_being_renewed(others, bearer.token) {
            claim.bearer.clone()
        } else {
            bearer.clone()
        }
    }

    /// Whether a renewal under this token is on its way, or has yet to be confirmed: it may
    /// count later on, from when it was sent.
    fn is_being_renewed(&self, renewals: u32, token: Token) -> bool {
        renewals > 0 || self.replicas.as_ref().is_some_and(|it| it.has(token))
    }

    /// Ends a chain, and returns those who have not entered; they have fresh tokens.
    pub(super) fn break_up(&mut self, now: Moment, chain: Token) -> Vec<LeaseId> {
        let mut ids = self.chains.remove(chain);
        ids.retain(|id| {
            let claim = self.claims.get(id);
            claim.is_some_and(|it| it.follows(chain))
        });
        for id in &ids {
            self.start_over(now, *id);
        }
        ids
    }

    /// The lock is not the chain's any more: those who have not entered queue again,
    /// behind what is sent before.
    pub(super) fn lose_chain(&mut self, now: Moment, chain: Token) {
        let ids = self.break_up(now, chain);
        for id in ids {
            self.claims.schedule(now, id);
        }
    }

    /// How many follow the one that has this token.
    pub(super) fn followers(&self, chain: Token) -> usize {
        self.following(chain).count()
    }

    /// The names of the first of them that hold other locks.
    pub(super) fn nested_followers(&self, chain: Token) -> Box<[Box<str>]> {
        let bearers = self.following(chain).map(|it| &it.bearer);
        let nested = bearers.filter(|it| !it.terms.holds.is_empty());
        nested
            .take(MOST_NAMED)
            .map(|it| (*it.name).into())
            .collect()
    }

    fn following(&self, chain: Token) -> impl Iterator<Item = &Claim> {
        let claims = self.chains.followers(chain).map(|id| self.claims.get(id));
        claims.flatten().filter(move |it| it.follows(chain))
    }

    /// What an acquire says of others here that want the same lock.
    pub(super) fn company(&self, id: LeaseId) -> Company {
        let claim = self.claims.get(&id);
        let Some(claim) = claim.filter(|it| it.stage == Stage::Unsent) else {
            return Company::Unsaid;
        };
        let terms = &claim.bearer.terms;
        let never = terms.wait.is_try() || claim.is_part || self.waiters.polled;
        if terms.kind != Kind::Exclusive || never {
            return Company::Unsaid;
        }
        if terms.is_alone() {
            return Company::Alone;
        }
        let key = &terms.key;
        let joins = |id| {
            let other = self.claims.get(id);
            other.is_some_and(|it| it.stage == Stage::Acquiring && it.bearer.terms.key == *key)
        };
        if self.waiters.has(key) || self.last_joined.iter().any(joins) || self.chains.has(key) {
            Company::More
        } else {
            Company::Unsaid
        }
    }

    /// Marks of the keys whose locks are handed over here.
    pub(crate) fn chained_keys(&self) -> u64 {
        self.chains.marks()
    }

    /// Whether all that is to be sent queues behind a chain of our own, and may as well be
    /// sent together with more of it.
    pub(crate) fn can_wait(&self) -> bool {
        let behind = |call: &Call<S>| match call {
            Call::Acquire { bearer, .. } => self.chains.has(&bearer.terms.key),
            _ => false,
        };
        !self.chains.is_empty() && self.calls.iter().all(|sent| behind(&sent.call))
    }

    /// The lock of the first of those calls, if there are any.
    pub(crate) fn waits_behind(&self) -> Option<&LockKey> {
        self.calls.first().filter(|_| self.can_wait())?.call.key()
    }
}
