//! Which acquisitions create and delete their nodes together: what a turn asks for goes to the
//! servers as one transaction, which costs them about as much as a single write.
//!
//! While two are in flight, the writes that come meanwhile gather for the next one. All
//! writes of a transaction are done or none, so one that was refused says nothing about each
//! of them: they are sent again one by one.

use std::collections::{HashSet, VecDeque};

use super::Queue;
use super::claim::Stage;
use crate::backend::claims::Turn;
use crate::backend::zookeeper::call::{Call, Recipient, Step};
use crate::backend::zookeeper::protocol::op::Op;
use crate::backend::zookeeper::protocol::reply::{Reply, Trouble};
use crate::base::clock::Moment;
use crate::types::key::LockKey;

/// The most writes of one transaction.
const MOST: usize = 64;
/// The size from which on nothing is added to one: a server closes the connection on a packet
/// of more than `jute.maxbuffer`.
const ENOUGH_BYTES: usize = 64 * 1024;
const MOST_IN_FLIGHT: usize = 2;

/// Acquisitions that are to create or delete their nodes.
#[derive(Default)]
pub(super) struct Writes {
    waiting: VecDeque<Turn>,
    /// Transactions that are not answered; a lone write counts as one.
    in_flight: usize,
}

/// One that is about to be sent.
struct Write {
    turn: Turn,
    step: Step,
    op: Op,
    /// The lock in whose queue it creates a node.
    joins: Option<LockKey>,
}

/// Those that are sent as one.
#[derive(Default)]
struct Batch {
    ops: Vec<Op>,
    members: Vec<(Turn, Step)>,
    joined: HashSet<LockKey>,
    bytes: usize,
}

impl Writes {
    /// An acquisition is to create or delete its node in this turn.
    pub(super) fn push(&mut self, turn: Turn) {
        self.waiting.push_back(turn);
    }

    /// A transaction is answered, or will not be.
    pub(super) fn ended(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }
}

impl Batch {
    fn is_full(&self) -> bool {
        self.ops.len() >= MOST || self.bytes >= ENOUGH_BYTES
    }

    fn add(&mut self, write: Write) {
        self.bytes += write.op.bytes();
        self.ops.push(write.op);
        self.members.push((write.turn, write.step));
    }

    /// A lone write needs no transaction.
    fn op(&mut self) -> Option<Op> {
        match self.ops.len() {
            0 | 1 => self.ops.pop(),
            _ => Some(Op::Multi(std::mem::take(&mut self.ops))),
        }
    }
}

impl Queue {
    /// What is to be sent.
    pub(in super::super) fn calls(&mut self, now: Moment) -> Vec<Call> {
        while self.writes.in_flight < MOST_IN_FLIGHT && !self.writes.waiting.is_empty() {
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
            && let Some(turn) = self.writes.waiting.pop_front()
        {
            let Some(write) = self.write(turn) else {
                continue;
            };
            let may_join = |key: &LockKey| {
                self.containers.is_there(now, key) && batch.joined.insert(key.clone())
            };
            if write.joins.as_ref().is_none_or(may_join) {
                batch.add(write);
            } else {
                alone.push(write);
            }
        }
        if let Some(op) = batch.op() {
            self.writes.in_flight += 1;
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

    /// What an acquisition is to write; `None` if nothing any more.
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

    /// Sends at once what an acquisition is to write in this turn.
    pub(super) fn write_alone(&mut self, turn: Turn) {
        if let Some(write) = self.write(turn) {
            self.send_alone(write);
        }
    }

    fn send_alone(&mut self, write: Write) {
        let to = Recipient::Claim(write.turn, write.step);
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
        self.writes.ended();
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
