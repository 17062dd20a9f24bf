//! What each request of the driver begins.

use std::sync::Arc;

use super::claim::Claim;
use super::{Queue, Stage};
use crate::backend::redis::protocol::call::Ticket;
use crate::backend::{Outcome, Request};
use crate::base::clock::Moment;
use crate::types::query::{Query, QueryId};
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
        if let Some(token) = self.claims.fresh_token(id) {
            self.begin(now, Claim::new(Ticket::new(token, terms), now));
        }
    }

    pub(super) fn begin(&mut self, now: Moment, claim: Claim) {
        let id = claim.ticket.terms.id;
        self.ids.insert(claim.ticket.token, id);
        let obstacle = self.obstacle(&claim.ticket.terms.key).cloned();
        self.claims.insert(id, claim);
        match obstacle {
            None => self.retry(now, id),
            Some(trouble) => self.trouble(id, &trouble),
        }
    }

    fn abandon(&mut self, now: Moment, id: LeaseId) {
        if self.pass_on(now, id) {
            return;
        }
        match self.claims.get_mut(&id) {
            Some(claim) if matches!(claim.stage, Stage::Chained { .. }) => {
                self.released(id, Ok(false));
            }
            Some(claim) if claim.stage != Stage::Unsent => {
                claim.leave(now);
                self.waiters.leave(&claim.ticket.terms.key, id);
                self.retry(now, id);
            }
            _ => self.released(id, Ok(false)),
        }
    }

    fn renew(&mut self, now: Moment, id: LeaseId) {
        let Some(claim) = self.claims.get(&id).filter(|it| it.is_held()) else {
            return;
        };
        let ticket = claim.ticket.clone();
        match &self.down {
            None => self.send_renewal(now, ticket),
            Some(trouble) => {
                let cause = trouble.cause();
                self.claims.report(Outcome::RenewFailed { id, cause });
            }
        }
    }

    fn release(&mut self, now: Moment, id: LeaseId) {
        if self.pass_on(now, id) {
            return;
        }
        match self.claims.get_mut(&id) {
            Some(claim) => {
                claim.stage = claim.releasing(now);
                self.retry(now, id);
            }
            None => self.released(id, Ok(false)),
        }
    }

    fn inspect(&mut self, now: Moment, id: QueryId, query: Query) {
        let obstacle = match &query {
            Query::ForceRelease(key) => self.obstacle(key),
            _ => self.down.as_ref(),
        };
        match obstacle {
            None => {
                for call in self.inspections.begin(now, id, query) {
                    self.send(now, call);
                }
            }
            Some(trouble) => {
                let result = Err(trouble.cause());
                self.claims.report(Outcome::Answered { id, result });
            }
        }
    }
}
