//! Sends what acquisitions create and delete, together where that is possible, and reads what
//! has come of it.

use super::Queue;
use super::claim::Stage;
use super::writes::{self, Batch, Write};
use crate::backend::claims::Turn;
use crate::backend::zookeeper::call::{Call, Recipient, Step};
use crate::backend::zookeeper::protocol::op::Op;
use crate::backend::zookeeper::protocol::reply::{Reply, Trouble};
use crate::base::clock::Moment;
use crate::types::key::LockKey;

impl Queue {
    /// The calls to send.
    pub(in super::super) fn calls(&mut self, now: Moment) -> Vec<Call> {
        while self.writes.are_due() {
            self.send_writes(now);
        }
        self.requests.take()
    }

    /// Sends the writes that have waited longest as one, and behind it those that need a call
    /// of their own. A container that may be gone would fail all others; and two nodes of one
    /// queue would have the same number of a change.
    fn send_writes(&mut self, now: Moment) {
        let (mut batch, mut alone) = (Batch::default(), Vec::new());
        while !batch.is_full()
            && alone.len() < writes::MOST_ALONE
            && let Some(turn) = self.writes.pop()
        {
            let Some(write) = self.write(turn) else {
                continue;
            };
            let may_join = |key: &LockKey| self.containers.is_there(now, key) && batch.joins(key);
            if write.joins.as_ref().is_none_or(may_join) {
                batch.add(write);
            } else {
                alone.push(write);
            }
        }
        if let Some(op) = batch.op() {
            self.writes.sent(writes::TOGETHER);
            let to = Recipient::Batch(batch.members.clone());
            self.requests.send(op, to);
        }
        for (turn, step) in batch.members {
            if step == Step::Create {
                self.joins(turn.id);
            }
        }
        for write in alone {
            self.send_alone(write);
        }
    }

    /// The write of an acquisition; `None` if it has nothing to write any more.
    fn write(&mut self, turn: Turn) -> Option<Write> {
        let timeout = self.session.as_ref()?.timeout;
        let claim = self.claims.in_turn(turn)?;
        let (step, op, joins) = match claim.stage {
            Stage::Creating if claim.unwanted => {
                self.released(turn.id, Ok(false));
                return None;
            }
            Stage::Creating => {
                let op = self.requests.create(claim, timeout);
                (Step::Create, op, Some(claim.terms.key.clone()))
            }
            Stage::Leaving { .. } => {
                let path = self.requests.path(claim, claim.node?);
                (Step::Leave, Op::Delete { path }, None)
            }
            _ => return None,
        };
        Some(Write {
            turn,
            step,
            op,
            joins,
        })
    }

    /// Sends at once what is to be deleted in the queue of this lock. A list that went ahead of it would show a lock that we
    /// have left as held.
    pub(super) fn leave_first(&mut self, key: &LockKey) {
        let claims = &self.claims;
        let leaves = |turn: Turn| {
            let claim = claims.get(&turn.id);
            claim
                .is_some_and(|it| matches!(it.stage, Stage::Leaving { .. }) && it.terms.key == *key)
        };
        for turn in self.writes.take(leaves) {
            self.write_alone(turn);
        }
    }

    /// Sends at once what an acquisition is to write in this turn.
    pub(super) fn write_alone(&mut self, turn: Turn) {
        if let Some(write) = self.write(turn) {
            self.send_alone(write);
        }
    }

    fn send_alone(&mut self, write: Write) {
        self.writes.sent(writes::ALONE);
        let to = Recipient::Alone(write.turn, write.step);
        self.requests.send(write.op, to);
        if write.joins.is_some() {
            self.joins(write.turn.id);
        }
    }

    /// A transaction is answered.
    pub(super) fn written(
        &mut self,
        now: Moment,
        members: Vec<(Turn, Step)>,
        reply: Result<Reply, Trouble>,
    ) {
        self.writes.ended(writes::TOGETHER);
        match reply {
            Ok(Reply::Parts(parts)) => {
                let mut parts = parts.into_iter();
                for (turn, step) in members {
                    let part = parts.next().ok_or(Trouble::Other(0));
                    self.answered(now, turn, step, part);
                }
            }
            Err(_) if members.len() > 1 => {
                for (turn, _) in members {
                    self.write_alone(turn);
                }
            }
            reply => {
                for (turn, step) in members {
                    self.answered(now, turn, step, reply.clone());
                }
            }
        }
    }
}
