//! Begins the requests of the driver, and ends claims.

use std::sync::Arc;
use std::time::Duration;

use super::Queue;
use super::claim::{Claim, Stage};
use super::session::Session;
use crate::backend::claims::UNCONFIRMED;
use crate::backend::etcd::protocol::trouble::Trouble;
use crate::backend::{Outcome, Request};
use crate::base::clock::Moment;
use crate::types::error::Cause;
use crate::types::key::LockKey;
use crate::types::terms::{LeaseId, Terms};

impl Queue {
    pub(crate) fn submit(&mut self, now: Moment, request: Request) {
        match request {
            Request::Acquire(terms) => self.acquire(now, terms),
            Request::Abandon(id) => self.abandon(now, id),
            Request::Renew(id) => self.renew(now, id),
            Request::Release(id) => self.release(now, id),
            Request::Downgrade(id) => self.downgrade(now, id),
            Request::Issue { id, ticket, time } => self.issue(now, id, ticket, time),
            // The backend answers a query by calls, which go through `inspect`.
            Request::Query(_) => {}
        }
    }

    fn acquire(&mut self, now: Moment, terms: Arc<Terms>) {
        let id = terms.id;
        if terms.adopts.is_some() && self.claims.contains(id) {
            return self.take_back(now, id);
        }
        let Some(token) = self.claims.fresh_token(id) else {
            return;
        };
        let (lock, adopts) = (terms.key.clone(), terms.adopts.is_some());
        let claim = Claim::new(terms, token);
        let session = self.sessions.entry(claim.ttl());
        session.or_insert_with_key(|ttl| Session::new(*ttl)).users += 1;
        self.claims.insert(id, claim);
        if !adopts {
            self.key_orders.join(&lock, id);
        }
        match self.down.clone() {
            None if adopts => self.go_on(now, id),
            None => self.pump(now, &lock),
            Some(trouble) => self.trouble(id, &trouble),
        }
    }

    fn abandon(&mut self, now: Moment, id: LeaseId) {
        let Some(claim) = self.claims.get_mut(&id) else {
            return self.released(id, Ok(false));
        };
        match claim.stage {
            // No late call makes its entry any more.
            Stage::Unsent if claim.may_be_made => {
                let lock = claim.terms.key.clone();
                self.key_orders.quit(&lock, id);
                self.leave(now, id);
                // A pause that it has begun would not end.
                self.key_orders.resume(&lock);
                self.pump(now, &lock);
            }
            Stage::Unsent => {
                let lock = claim.terms.key.clone();
                self.released(id, Ok(false));
                // A pause that it has begun would not end.
                self.key_orders.resume(&lock);
                self.pump(now, &lock);
            }
            // Its entry may be made yet.
            Stage::Entering | Stage::Unsure => {
                let until = now.after(claim.terms.ttl);
                claim.leaving = Some(until);
                self.claims.schedule(until, id);
            }
            Stage::Seeking => self.released(id, Ok(false)),
            Stage::Adopting => self.stop_adopting(now, id),
            _ if claim.takes_back => {
                let until = now.after(claim.terms.ttl);
                claim.leaving = Some(until);
                self.claims.schedule(until, id);
            }
            _ => self.leave(now, id),
        }
    }

    fn renew(&mut self, now: Moment, id: LeaseId) {
        let Some(claim) = self.claims.get(&id).filter(|it| it.is_held()) else {
            return;
        };
        let ttl = claim.ttl();
        if let Some(trouble) = &self.down {
            let cause = trouble.cause();
            self.claims.report(Outcome::RenewFailed { id, cause });
            return;
        }
        let Some(session) = self.sessions.get_mut(&ttl) else {
            return;
        };
        if session.is_fresh(now)
            && let Some((since, ttl)) = session.confirmed()
        {
            self.claims.report(Outcome::Renewed { id, since, ttl });
            return;
        }
        session.renewing.push(id);
        self.with_session(now, ttl, |session, around| session.beat(now, around));
    }

    fn release(&mut self, now: Moment, id: LeaseId) {
        let Some(claim) = self.claims.get_mut(&id) else {
            return self.released(id, Ok(false));
        };
        let Stage::Held { granted } = claim.stage else {
            return self.abandon(now, id);
        };
        let cooldown = claim.terms.cooldown(granted, now);
        if cooldown.is_zero() {
            return self.leave(now, id);
        }
        claim.stage = Stage::Moving {
            cools_until: now.after(cooldown),
            lease: None,
        };
        claim.awaits = false;
        claim.leaving = Some(now.after(claim.terms.ttl));
        // The next request finds the cooldown.
        self.key_orders.begin(&claim.terms.key);
        self.unwatch(id);
        self.go_on(now, id);
    }

    /// Deletes the entry; the driver waits for that as long as a lease lasts.
    pub(super) fn leave(&mut self, now: Moment, id: LeaseId) {
        self.unwatch(id);
        let claim = self.claims.get_mut(&id);
        let Some(claim) = claim.filter(|claim| claim.stage != Stage::Leaving) else {
            return;
        };
        claim.leaving.get_or_insert(now.after(claim.terms.ttl));
        // Nobody looks at the answer to a call in flight any more.
        claim.awaits = false;
        claim.stage = Stage::Leaving;
        self.go_on(now, id);
    }

    /// A lock that was held is not ours any more.
    pub(super) fn lose(&mut self, id: LeaseId) {
        if let Some(claim) = self.claims.remove(&id) {
            self.forget(&claim);
            self.claims.report(Outcome::NotHeld { id });
        }
    }

    /// Something is in the way of an acquisition for now.
    pub(super) fn trouble(&mut self, id: LeaseId, trouble: &Trouble) {
        if self.claims.get(&id).is_some_and(Claim::acquires) {
            self.claims.report(Outcome::Trouble {
                id,
                cause: trouble.cause(),
                soon: matches!(trouble, Trouble::Unknown(_)),
            });
        }
    }

    /// An acquisition whose entry is not known to be there is refused for good. An earlier call without an answer may
    /// have made the entry.
    pub(super) fn refuse(&mut self, now: Moment, id: LeaseId, cause: Cause) {
        if self.claims.get(&id).is_some_and(|it| it.may_be_made) {
            self.fail(now, id, cause);
        } else {
            self.retire(Outcome::Failed { id, cause });
        }
    }

    /// The same of one that is in the order of its lock, in which the next one takes its place.
    pub(super) fn refuse_unsent(&mut self, now: Moment, id: LeaseId, cause: Cause) {
        let Some(claim) = self.claims.get(&id) else {
            return;
        };
        let lock = claim.terms.key.clone();
        self.refuse_next(now, &lock, id, cause);
        self.pump(now, &lock);
    }

    /// The same, without a look at the next one.
    pub(super) fn refuse_next(&mut self, now: Moment, lock: &LockKey, id: LeaseId, cause: Cause) {
        self.key_orders.quit(lock, id);
        self.refuse(now, id, cause);
        // A pause that it has begun would not end.
        self.key_orders.resume(lock);
    }

    /// An acquisition is refused for good; its entry, if there is one, is deleted.
    pub(super) fn fail(&mut self, now: Moment, id: LeaseId, cause: Cause) {
        self.claims.report(Outcome::Failed { id, cause });
        self.leave(now, id);
    }

    /// The driver need not wait for a release that is not confirmed in time; the entry
    /// is deleted all the same.
    pub(super) fn report_if_late(&mut self, now: Moment, id: LeaseId) {
        let claim = self.claims.get(&id);
        let Some(until) = claim.and_then(|claim| claim.leaving) else {
            return;
        };
        if self.claims.has_ended(id) {
            return;
        }
        if now < until {
            self.claims.schedule(until, id);
        } else {
            let said = || Trouble::said(UNCONFIRMED);
            let result = Err(self.down.clone().unwrap_or_else(said).cause());
            self.claims.report(Outcome::Released { id, result });
            self.uses_no_lease(id);
        }
    }

    /// The lease is not kept alive for a claim that cannot leave: its entry goes when the lease ends.
    pub(super) fn uses_no_lease(&mut self, id: LeaseId) {
        if let Some(claim) = self.claims.get_mut(&id)
            && std::mem::take(&mut claim.uses_lease)
        {
            let ttl = claim.ttl();
            self.is_used_less(ttl);
        }
    }

    fn is_used_less(&mut self, ttl: Duration) {
        if let Some(session) = self.sessions.get_mut(&ttl) {
            session.users -= 1;
        }
    }

    /// It is not ours any more, or never was; whether it was until now.
    pub(super) fn released(&mut self, id: LeaseId, result: Result<bool, Cause>) {
        self.retire(Outcome::Released { id, result });
    }

    /// Forgets a claim that ends with this outcome.
    pub(super) fn retire(&mut self, outcome: Outcome) {
        if let Some(claim) = self.claims.retire(outcome) {
            self.forget(&claim);
        }
    }

    fn forget(&mut self, claim: &Claim) {
        if let Some((watch, _)) = claim.watch {
            self.watches.end(watch);
        }
        self.key_orders.quit(&claim.terms.key, claim.terms.id);
        if let Some(slot) = claim.slot.filter(|_| !claim.may_come_late) {
            self.slots.free(&claim.terms.key, slot);
        }
        if claim.uses_lease {
            self.is_used_less(claim.ttl());
        }
    }
}
