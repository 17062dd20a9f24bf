//! What each request of the driver begins.

use std::sync::Arc;

use super::Queue;
use super::claim::{Claim, Stage};
use super::session::Session;
use crate::backend::{Outcome, Request};
use crate::base::clock::Moment;
use crate::types::query::{Found, Query, QueryId};
use crate::types::terms::{LeaseId, Terms};

impl Queue {
    pub(crate) fn submit(&mut self, now: Moment, request: Request) {
        match request {
            Request::Acquire(terms) => self.acquire(now, terms),
            Request::Abandon(id) => self.abandon(now, id),
            Request::Renew(id) => self.renew(now, id),
            Request::Release(id) => self.release(now, id),
            Request::Query(id, query) => self.inspect(now, id, query),
        }
    }

    fn acquire(&mut self, now: Moment, terms: Arc<Terms>) {
        let id = terms.id;
        let Some(token) = self.claims.fresh_token(id) else {
            return;
        };
        let lock = terms.key.clone();
        let key = self.keys.entry(&lock, terms.kind, token);
        let claim = Claim::new(terms, token, key);
        let session = self.sessions.entry(claim.ttl());
        session.or_insert_with_key(|ttl| Session::new(*ttl)).users += 1;
        self.claims.insert(id, claim);
        self.key_orders.join(&lock, id);
        match self.down.clone() {
            None => self.pump(now, &lock),
            Some(trouble) => self.trouble(id, &trouble),
        }
    }

    fn abandon(&mut self, now: Moment, id: LeaseId) {
        let Some(claim) = self.claims.get_mut(&id) else {
            return self.released(id, Ok(false));
        };
        match claim.stage {
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
        let cooldown = claim.terms.rest(granted, now);
        if cooldown.is_zero() {
            return self.leave(now, id);
        }
        claim.stage = Stage::Moving {
            cools_until: now.after(cooldown),
            lease: None,
        };
        claim.awaits = false;
        claim.leaving = Some(now.after(claim.terms.ttl));
        // What is asked for next finds that it cools down.
        self.key_orders.begin(&claim.terms.key);
        self.unwatch(id);
        self.go_on(now, id);
    }

    /// The answer to a query that needs no call.
    pub(crate) fn answer(&mut self, id: QueryId, found: Found) {
        let result = Ok(found);
        self.claims.report(Outcome::Answered { id, result });
    }

    fn inspect(&mut self, now: Moment, id: QueryId, query: Query) {
        match &self.down {
            None => {
                let call = self.inspections.begin(now, id, query, &self.keys);
                self.calls.push(call);
            }
            Some(trouble) => {
                let result = Err(trouble.cause());
                self.claims.report(Outcome::Answered { id, result });
            }
        }
    }
}
