//! What each request of the driver begins.

use std::sync::Arc;
use std::time::Duration;

use super::claim::{Claim, Stage};
use super::protocol::call::{Bearer, Call, Sent};
use super::protocol::step::{AskedBy, Step};
use super::reports::Reports;
use super::{PAUSE, Queue};
use crate::backend::token::Token;
use crate::backend::{Outcome, Request};
use crate::base::clock::Moment;
use crate::types::terms::{LeaseId, Terms};
use crate::types::ticket_id::TicketId;

impl<S: Step> Queue<S> {
    pub(crate) fn submit(&mut self, now: Moment, request: Request) {
        match request {
            Request::Acquire(terms) => self.acquire(now, terms),
            Request::Abandon(id) => self.abandon(now, id),
            Request::Renew(id) => self.renew(now, id),
            Request::Release(id) => self.release(now, id),
            Request::Downgrade(id) => self.downgrade(now, id),
            Request::Issue { id, ticket, time } => self.issue(now, id, ticket, time),
            // The backend answers it by steps, which go through `inspect`.
            Request::Query(_) => {}
        }
    }

    fn acquire(&mut self, now: Moment, terms: Arc<Terms>) {
        let id = terms.id;
        // It takes back a ticket that the server has refused to write. The server forbids the release of the lock, too, which
        // is repeated.
        if let Some(claim) = self.claims.remove(&id) {
            self.claims.report(Outcome::NoTicket { id });
            self.claims.insert(id, claim);
            return self.claims.schedule(now.after(PAUSE), id);
        }
        if let Some(token) = self.claims.fresh_token(id) {
            self.begin(now, Claim::new(Bearer::new(token, terms), now));
        }
    }

    pub(super) fn begin(&mut self, now: Moment, claim: Claim) {
        let id = claim.bearer.terms.id;
        self.ids.insert(claim.bearer.token, id);
        let obstacle = self.obstacle(&claim.bearer.terms.key).cloned();
        self.claims.insert(id, claim);
        match obstacle {
            None => self.retry(now, id),
            Some(trouble) => self.trouble(id, &trouble),
        }
    }

    fn abandon(&mut self, now: Moment, id: LeaseId) {
        if self.hand_over(now, id) {
            return;
        }
        let leaves_nothing = match self.claims.get(&id) {
            Some(claim) if claim.stage == Stage::Acquiring => {
                // A part repeats the release of its former token; and what has acquired before may have the lock.
                let is_all = !claim.is_part && !claim.acquires_again();
                let token = claim.bearer.token;
                is_all && self.take_back(token)
            }
            Some(claim) => matches!(claim.stage, Stage::Unsent | Stage::Chained { .. }),
            None => true,
        };
        if leaves_nothing {
            return self.released(id, Ok(false));
        }
        if let Some(claim) = self.claims.get_mut(&id) {
            claim.leave(now);
            self.waiters.leave(&claim.bearer.terms.key, id);
            self.retry(now, id);
        }
    }

    /// Takes back an acquire that has not been sent yet, which would hold the lock for a moment.
    fn take_back(&mut self, token: Token) -> bool {
        let is_it = |it: &Sent<S>| matches!(&it.call, Call::Acquire { bearer, .. } if bearer.token == token);
        let unsent = self.calls.iter().rposition(is_it);
        unsent.map(|at| self.calls.remove(at)).is_some()
    }

    pub(super) fn renew(&mut self, now: Moment, id: LeaseId) {
        // A server that has to know who of a chain has the lock needs no note of it.
        let noted = !self.passes;
        let Some(claim) = self.claims.get_mut(&id).filter(|it| it.is_held()) else {
            return;
        };
        claim.noted = noted;
        let bearer = claim.bearer.clone();
        match &self.down {
            None => self.send_renewal(now, bearer),
            Some(trouble) => {
                claim.not_renewed(trouble);
                let cause = trouble.cause();
                self.claims.report(Outcome::RenewFailed { id, cause });
            }
        }
    }

    fn release(&mut self, now: Moment, id: LeaseId) {
        if self.hand_over(now, id) {
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

    /// Whoever follows in a chain queues again: the lock is not handed over.
    fn issue(&mut self, now: Moment, id: LeaseId, ticket: TicketId, time: Duration) {
        let Some(claim) = self.claims.get_mut(&id).filter(|it| it.is_held()) else {
            return self.released(id, Ok(false));
        };
        claim.stage = Stage::Issuing {
            ticket,
            ends: now.after(time),
            until: now.after(claim.bearer.terms.ttl),
        };
        let chain = claim.bearer.token;
        self.retry(now, id);
        self.lose_chain(now, chain);
    }

    /// What holders report from now on.
    pub(crate) fn listen(&mut self) -> Reports {
        self.listeners.listen()
    }

    /// Sends a step of a query.
    pub(crate) fn inspect(&mut self, now: Moment, step: S, by: AskedBy<S>) {
        let obstacle = match step.may_grant() {
            Some(key) => self.obstacle(key),
            None => self.down.as_ref(),
        };
        match obstacle {
            None => self.calls.push(Sent::step(step, by, now)),
            Some(trouble) => drop(by.send(Err(trouble.clone()))),
        }
    }
}
