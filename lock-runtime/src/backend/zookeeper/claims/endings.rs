//! Renewals, and how acquisitions end: released, given up, or lost with the session.

use std::time::Duration;

use super::Claims;
use super::claim::{Claim, Stage};
use crate::backend::Outcome;
use crate::backend::zookeeper::call::{Call, Step, To, cause};
use crate::backend::zookeeper::protocol::op::Op;
use crate::backend::zookeeper::protocol::reply::Refusal;
use crate::base::clock::Moment;
use crate::types::error::Cause;
use crate::types::terms::LeaseId;

impl Claims {
    /// Answers from the last heartbeat if it is news, and else from the next one.
    pub(in super::super) fn renew(&mut self, id: LeaseId) {
        let held = |it: &&mut Claim| it.stage == Stage::Held;
        let claim = self.table.get_mut(&id).filter(held);
        let (Some(claim), Some(session)) = (claim, &self.session) else {
            self.outcomes.push_back(Outcome::NotHeld { id });
            return;
        };
        claim.renewing = session.since() <= claim.told;
        if !claim.renewing {
            claim.told = session.since();
            self.outcomes.push_back(Outcome::Renewed {
                id,
                since: session.since(),
                ttl: session.timeout,
            });
        }
    }

    /// Lets go of the lock, which rests if its terms say so.
    pub(in super::super) fn release(&mut self, now: Moment, id: LeaseId) {
        let rest = self.table.get(&id).map(|claim| match claim.stage {
            Stage::Held => claim.terms.rest(claim.granted, now),
            _ => Duration::ZERO,
        });
        self.end(id, rest.filter(|it| !it.is_zero()));
    }

    /// Leaves the line, or lets go of the lock at once.
    pub(in super::super) fn abandon(&mut self, id: LeaseId) {
        self.end(id, None);
    }

    fn end(&mut self, id: LeaseId, rest: Option<Duration>) {
        let Some(claim) = self.table.get_mut(&id) else {
            return self.end_release(id, Ok(false));
        };
        claim.unwanted = true;
        match claim.stage {
            Stage::Fresh | Stage::Trying | Stage::Refused => self.end_release(id, Ok(false)),
            // Known soon.
            Stage::Creating | Stage::Finding | Stage::Leaving { .. } => {}
            Stage::InLine | Stage::Held => self.leave(id, rest),
        }
    }

    /// Deletes its node, and leaves another one in its place while the lock rests.
    pub(super) fn leave(&mut self, id: LeaseId, rest: Option<Duration>) {
        let Some(claim) = self.table.get_mut(&id) else {
            return;
        };
        let Some(node) = claim.node else {
            return self.end_release(id, Ok(false));
        };
        claim.unwanted = true;
        claim.turn += 1;
        claim.stage = Stage::Leaving {
            held: claim.stage == Stage::Held,
            again: false,
        };
        claim.rest = rest;
        let to = To::Claim(id, claim.turn, Step::Leave);
        let claim = &self.table[&id];
        let path = self.path(claim, node.entry);
        let op = match rest {
            None => Op::Delete { path },
            Some(rest) => Op::Replace {
                old: path,
                new: self.path(claim, node.entry.resting()),
                data: claim.resting_data(rest),
            },
        };
        self.calls.push(Call::new(op, to));
    }

    /// The server has answered to that.
    pub(super) fn left(&mut self, id: LeaseId, refusal: Option<Refusal>) {
        let Some(Stage::Leaving { held, again }) = self.table.get(&id).map(|it| it.stage) else {
            return;
        };
        let result = match refusal {
            None => Ok(held),
            // Where an answer was lost, it was most likely that one.
            Some(Refusal::NoNode) => Ok(held && again),
            Some(refusal) => {
                // Its node would hold up the line for as long as the session lasts.
                let claim = &self.table[&id];
                let path = claim.node.map(|it| self.path(claim, it.entry));
                self.leftovers.extend(path);
                Err(cause(refusal))
            }
        };
        self.end_release(id, result);
    }

    pub(super) fn end_release(&mut self, id: LeaseId, result: Result<bool, Cause>) {
        self.table.remove(&id);
        self.outcomes.push_back(Outcome::Released { id, result });
    }
}
