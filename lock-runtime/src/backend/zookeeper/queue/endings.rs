//! Renewals, and how acquisitions end: released, given up, or lost with the session.

use std::time::Duration;

use super::Queue;
use super::claim::{Claim, Stage};
use crate::backend::Outcome;
use crate::backend::zookeeper::call::{Recipient, Step, cause};
use crate::backend::zookeeper::protocol::op::Op;
use crate::backend::zookeeper::protocol::reply::Refusal;
use crate::base::clock::Moment;
use crate::types::error::Cause;
use crate::types::terms::LeaseId;

impl Queue {
    /// Answers from the last heartbeat if it is news, and else from the next one.
    pub(in super::super) fn renew(&mut self, id: LeaseId) {
        let held = |it: &&mut Claim| it.stage == Stage::Held;
        let claim = self.claims.get_mut(&id).filter(held);
        let (Some(claim), Some(session)) = (claim, &self.session) else {
            self.claims.report(Outcome::NotHeld { id });
            return;
        };
        claim.renewing = session.since() <= claim.since;
        if !claim.renewing {
            claim.since = session.since();
            self.claims.report(Outcome::Renewed {
                id,
                since: session.since(),
                ttl: session.timeout,
            });
        }
    }

    /// Lets go of the lock, which cools down if its terms say so.
    pub(in super::super) fn release(&mut self, now: Moment, id: LeaseId) {
        let cooldown = self.claims.get(&id).map(|claim| match claim.stage {
            Stage::Held => claim.terms.rest(claim.granted, now),
            _ => Duration::ZERO,
        });
        self.end(id, cooldown.filter(|it| !it.is_zero()));
    }

    /// Leaves the queue, or lets go of the lock at once.
    pub(in super::super) fn abandon(&mut self, id: LeaseId) {
        self.end(id, None);
    }

    fn end(&mut self, id: LeaseId, cooldown: Option<Duration>) {
        let Some(claim) = self.claims.get_mut(&id) else {
            return self.released(id, Ok(false));
        };
        claim.unwanted = true;
        match claim.stage {
            Stage::Fresh | Stage::Trying | Stage::Refused => self.released(id, Ok(false)),
            // Known soon.
            Stage::Creating | Stage::Finding | Stage::Leaving { .. } => {}
            Stage::InQueue | Stage::Held => self.leave(id, cooldown),
        }
    }

    /// Deletes its node, and leaves another one in its place while the lock cools down.
    pub(super) fn leave(&mut self, id: LeaseId, cooldown: Option<Duration>) {
        let turn = self.claims.next_turn(id);
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        let Some(node) = claim.node else {
            return self.released(id, Ok(false));
        };
        claim.unwanted = true;
        claim.stage = Stage::Leaving {
            held: claim.stage == Stage::Held,
            again: false,
        };
        claim.cooldown = cooldown;
        let path = self.requests.path(claim, node.entry);
        let op = match cooldown {
            None => Op::Delete { path },
            Some(cooldown) => Op::Replace {
                old: path,
                new: self.requests.path(claim, node.entry.resting()),
                data: claim.cooldown_data(cooldown),
            },
        };
        self.requests.send(op, Recipient::Claim(turn, Step::Leave));
    }

    /// The server has answered to that.
    pub(super) fn left(&mut self, id: LeaseId, refusal: Option<Refusal>) {
        let Some(claim) = self.claims.get(&id) else {
            return;
        };
        let Stage::Leaving { held, again } = claim.stage else {
            return;
        };
        let result = match refusal {
            None => Ok(held),
            // Where an answer was lost, it was most likely that one.
            Some(Refusal::NoNode) => Ok(held && again),
            Some(refusal) => {
                // Its node would hold up the queue for as long as the session lasts.
                if let Some(node) = claim.node {
                    let path = self.requests.path(claim, node.entry);
                    self.requests.not_discarded(path);
                }
                Err(cause(refusal))
            }
        };
        self.released(id, result);
    }

    pub(super) fn released(&mut self, id: LeaseId, result: Result<bool, Cause>) {
        self.claims.retire(Outcome::Released { id, result });
    }

    /// It was held, and is not ours any more.
    pub(super) fn lost(&mut self, id: LeaseId) {
        self.claims.remove(&id);
        self.claims.report(Outcome::NotHeld { id });
    }
}
