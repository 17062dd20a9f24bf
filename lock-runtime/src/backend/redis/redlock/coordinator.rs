//! Decides by majority: which servers are asked for what, and what their answers mean for
//! an acquisition. A state machine without I/O.

use std::sync::Arc;

use super::claim::{Claim, Grant, Part, Stage};
use super::clocks::Clocks;
use crate::backend::claims::Claims;
use crate::backend::queue::order::Order;
use crate::backend::{Outcome, Request};
use crate::base::clock::Moment;
use crate::types::error::Cause;
use crate::types::terms::{LeaseId, Terms, Wait};

/// How often a single try looks who has the lock, before it counts as held.
const LOOKS: u32 = 4;

/// Everything that goes to the servers together.
#[derive(Debug)]
pub(crate) struct Coordinator {
    pub(super) claims: Claims<Claim>,
    pub(super) orders: Vec<(usize, Order)>,
    pub(super) clocks: Clocks,
    pub(super) servers: usize,
}

impl Coordinator {
    pub(crate) fn new(clocks: Clocks) -> Self {
        let servers = clocks.servers();
        Self {
            claims: Claims::default(),
            orders: Vec::new(),
            clocks,
            servers,
        }
    }

    /// The next orders, each with its server.
    pub(crate) fn orders(&mut self) -> Vec<(usize, Order)> {
        std::mem::take(&mut self.orders)
    }

    pub(crate) fn next_outcome(&mut self) -> Option<Outcome> {
        self.claims.next_outcome()
    }

    /// When [`tick`](Self::tick) will next have something to do.
    pub(crate) fn next_wakeup(&self) -> Option<Moment> {
        self.claims.next_wakeup()
    }

    /// The clock of a server is ahead of ours by so many µs.
    pub(crate) fn learn(&mut self, server: usize, ahead: i64) {
        self.clocks.learn(server, ahead);
    }

    /// Takes in what the driver asks.
    pub(crate) fn submit(&mut self, now: Moment, request: Request) {
        match request {
            Request::Acquire(terms) => self.acquire(now, terms),
            Request::Abandon(id) => self.leave(id, None),
            Request::Release(id) => self.release(now, id),
            Request::Renew(id) => self.renew(now, id),
            // The servers answer a query, and there are no tickets.
            Request::Query(_) | Request::Issue { .. } | Request::Downgrade(_) => {}
        }
    }

    /// Takes in what one server has answered.
    pub(crate) fn settle(&mut self, now: Moment, server: usize, outcome: Outcome) {
        match outcome {
            Outcome::Granted {
                id,
                fence,
                since,
                ttl,
                ..
            } => {
                let grant = Grant {
                    fence,
                    since,
                    ttl,
                    kept: now,
                    asked: None,
                };
                self.granted(now, server, id, grant);
            }
            Outcome::Waiting { id, holder } | Outcome::Busy { id, holder } => {
                self.note(now, server, id, Part::Waiting(holder));
            }
            Outcome::Trouble { id, cause, soon } => {
                self.note(now, server, id, Part::Trouble);
                self.obstructed(id, cause, soon);
            }
            Outcome::Failed { id, cause } => {
                self.note(now, server, id, Part::Failed);
                self.obstructed(id, cause, false);
            }
            // No ticket is adopted here.
            Outcome::NoTicket { .. } => self.give_up(outcome),
            Outcome::Renewed { id, since, ttl } => self.renewed(now, server, id, since, ttl),
            Outcome::RenewFailed { id, cause } => self.renew_failed(now, server, id, cause),
            Outcome::Wanted { .. } => self.claims.report(outcome),
            Outcome::NotHeld { id } => self.not_held(now, server, id),
            Outcome::Released { id, result } => self.left(server, id, result),
            // Nobody asks for that.
            Outcome::Downgraded { .. } => {}
        }
    }

    /// Carries out due work.
    pub(crate) fn tick(&mut self, now: Moment) {
        while let Some(id) = self.claims.due(now) {
            let Some(claim) = self.claims.get_mut(&id) else {
                continue;
            };
            claim.rounds += 1;
            let looked_enough = claim.terms.wait.is_try() && claim.rounds > LOOKS;
            // "Held" would be a guess where too few have answered.
            if looked_enough && claim.has_heard_majority() {
                self.busy(id);
            } else {
                self.yield_parts(now, id, 0, |_, part| matches!(part, Part::Granted(_)));
                self.contend(now, id);
            }
        }
    }

    fn acquire(&mut self, now: Moment, terms: Arc<Terms>) {
        let id = terms.id;
        let Some(token) = self.claims.fresh_token(id) else {
            return;
        };
        let position = self.clocks.position(now);
        // One that tries once waits in the queues too, until it is known who has the lock.
        let waits = if terms.wait.is_try() {
            Arc::new(Terms {
                wait: Wait::Forever,
                ..Terms::clone(&terms)
            })
        } else {
            Arc::clone(&terms)
        };
        for server in 0..self.servers {
            let terms = Arc::clone(&waits);
            let order = Order::Acquire {
                terms,
                token,
                position,
            };
            self.orders.push((server, order));
        }
        let claim = Claim::new(now, terms, token, position, self.servers);
        self.claims.insert(id, claim);
    }

    /// Notes the position of an acquisition on a server.
    pub(super) fn note(&mut self, now: Moment, server: usize, id: LeaseId, says: Part) {
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        if matches!(claim.parts[server], Part::Left(_)) {
            return;
        }
        claim.parts[server] = says;
        match claim.stage {
            Stage::Acquiring => self.contend(now, id),
            Stage::Raising { .. } => self.number(now, id),
            Stage::Held { fence, .. } => self.joined(now, server, id, fence),
            Stage::Leaving => {}
        }
    }

    /// So many servers cannot be asked that there is no majority.
    fn obstructed(&mut self, id: LeaseId, cause: Cause, soon: bool) {
        let Some(claim) = self.claims.get(&id) else {
            return;
        };
        if !matches!(claim.stage, Stage::Acquiring) {
            return;
        }
        let failed = claim.count(|it| matches!(it, Part::Failed));
        let troubled = claim.count(|it| matches!(it, Part::Trouble));
        if failed >= claim.minority() {
            self.give_up(Outcome::Failed { id, cause });
        } else if failed + troubled >= claim.minority() {
            self.claims.report(Outcome::Trouble { id, cause, soon });
        }
    }

    /// A single try has found the lock held.
    pub(super) fn busy(&mut self, id: LeaseId) {
        let claim = self.claims.get(&id);
        let holder = claim.and_then(|it| it.holder().0.cloned().map(Box::new));
        self.give_up(Outcome::Busy { id, holder });
    }

    /// Ends an acquisition with this outcome; the servers are still to hear of it.
    fn give_up(&mut self, outcome: Outcome) {
        if let Some(id) = outcome.ended() {
            self.leave(id, None);
        }
        self.claims.retire(outcome);
    }
}
