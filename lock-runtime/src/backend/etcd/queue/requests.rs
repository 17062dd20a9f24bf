//! What each request of the driver begins.

use std::sync::Arc;

use super::Queue;
use super::claim::{Claim, Stage};
use super::lease::News;
use super::session::Session;
use crate::backend::etcd::protocol::trouble;
use crate::backend::{Outcome, Request};
use crate::base::clock::Moment;
use crate::types::terms::{LeaseId, Terms};

impl Queue {
    pub(crate) fn submit(&mut self, now: Moment, request: Request) {
        match request {
            Request::Acquire(terms) => self.acquire(now, terms),
            Request::Abandon(id) => self.abandon(now, id),
            Request::Renew(id) => self.renew(now, id),
            Request::Release(id) => self.release(now, id),
            // The backend answers it by calls, which go through `inspect`.
            Request::Query(_) => {}
        }
    }

    fn acquire(&mut self, now: Moment, terms: Arc<Terms>) {
        let id = terms.id;
        let token = match self.tokens.next() {
            Ok(token) => token,
            Err(error) => {
                let cause = trouble::cause(format!("no random numbers: {error}"));
                self.outcomes.push_back(Outcome::Failed { id, cause });
                return;
            }
        };
        let lock = terms.key.clone();
        let key = self.keys.entry(&lock, terms.kind, token);
        let claim = Claim::new(terms, token, key);
        let session = self.sessions.entry(claim.ttl());
        session.or_insert_with_key(|ttl| Session::new(*ttl)).users += 1;
        self.claims.insert(id, claim);
        self.lanes.join(&lock, id);
        match self.down.clone() {
            None => self.pump(now, &lock),
            Some(trouble) => self.trouble(id, &trouble),
        }
    }

    fn abandon(&mut self, now: Moment, id: LeaseId) {
        let Some(claim) = self.claims.get_mut(&id) else {
            return self.retire(id, Ok(false));
        };
        match claim.stage {
            Stage::Unsent => {
                let lock = claim.terms.key.clone();
                self.retire(id, Ok(false));
                // A pause that it has begun would not end.
                self.lanes.resume(&lock);
                self.pump(now, &lock);
            }
            Stage::Lost => self.retire(id, Ok(false)),
            // Its entry may be made yet.
            Stage::Entering | Stage::Unsure => {
                let until = now.after(claim.terms.ttl);
                claim.leaving = Some(until);
                self.go_on_at(until, id);
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
            self.outcomes.push_back(Outcome::RenewFailed { id, cause });
            return;
        }
        let Some(session) = self.sessions.get_mut(&ttl) else {
            return;
        };
        if session.is_fresh(now)
            && let Some((since, ttl)) = session.confirmed()
        {
            self.outcomes.push_back(Outcome::Renewed { id, since, ttl });
            return;
        }
        session.renewing.push(id);
        self.with_session(now, ttl, |session, around| {
            session.beat(now, around);
            News::Nothing
        });
    }

    fn release(&mut self, now: Moment, id: LeaseId) {
        let Some(claim) = self.claims.get_mut(&id) else {
            return self.retire(id, Ok(false));
        };
        let Stage::Held { granted } = claim.stage else {
            return self.abandon(now, id);
        };
        let rest = claim.terms.rest(granted, now);
        if rest.is_zero() {
            return self.leave(now, id);
        }
        let rests = now.after(rest);
        claim.stage = Stage::Moving { rests, lease: None };
        claim.awaits = None;
        claim.leaving = Some(now.after(claim.terms.ttl));
        // What is asked for next finds that it rests.
        self.lanes.begin(&claim.terms.key);
        self.unwatch(id);
        self.go_on(now, id);
    }
}
