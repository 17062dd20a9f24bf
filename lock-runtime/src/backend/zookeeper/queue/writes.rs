//! Decides which acquisitions create and delete their nodes together: the writes of a turn go to the
//! servers as one transaction, which costs them about as much as a single write.
//!
//! While two are in flight, the writes that come meanwhile gather for the next one, as they do
//! behind many that have to go alone: a heartbeat waits for all that went before it. All
//! writes of a transaction are done or none, so one that was refused says nothing about each
//! of them: they are sent again one by one.

use std::collections::{HashSet, VecDeque};

use crate::backend::claims::Turn;
use crate::backend::zookeeper::call::Step;
use crate::backend::zookeeper::protocol::op::Op;
use crate::types::key::LockKey;

/// The most writes of one transaction.
const MOST: usize = 64;
/// The size from which on nothing is added to one: a server closes the connection on a packet
/// of more than `jute.maxbuffer`.
const ENOUGH_BYTES: usize = 64 * 1024;
/// How much may be in flight, and what counts how much: writes that go together, and one that
/// goes alone.
const MOST_IN_FLIGHT: usize = 2 * TOGETHER;
pub(super) const TOGETHER: usize = 32;
pub(super) const ALONE: usize = 1;
pub(super) const MOST_ALONE: usize = MOST_IN_FLIGHT / ALONE;

/// Acquisitions that are to create or delete their nodes.
#[derive(Default)]
pub(super) struct Writes {
    waiting: VecDeque<Turn>,
    /// What is not answered.
    in_flight: usize,
}

/// One that is about to be sent.
pub(super) struct Write {
    pub(super) turn: Turn,
    pub(super) step: Step,
    pub(super) op: Op,
    /// The lock in whose queue it creates a node.
    pub(super) joins: Option<LockKey>,
}

/// Those that are sent as one.
#[derive(Default)]
pub(super) struct Batch {
    ops: Vec<Op>,
    pub(super) members: Vec<(Turn, Step)>,
    joined: HashSet<LockKey>,
    bytes: usize,
}

impl Writes {
    /// An acquisition is to create or delete its node in this turn.
    pub(super) fn push(&mut self, turn: Turn) {
        self.waiting.push_back(turn);
    }

    /// The one that has waited longest.
    pub(super) fn pop(&mut self) -> Option<Turn> {
        self.waiting.pop_front()
    }

    /// Those of them that are not to wait for others.
    pub(super) fn take(&mut self, is_urgent: impl Fn(Turn) -> bool) -> Vec<Turn> {
        let (urgent, waiting) = self.waiting.drain(..).partition(|turn| is_urgent(*turn));
        self.waiting = waiting;
        Vec::from(urgent)
    }

    /// Whether more may be sent, and there is more.
    pub(super) fn are_due(&self) -> bool {
        self.in_flight < MOST_IN_FLIGHT && !self.waiting.is_empty()
    }

    /// So much is sent.
    pub(super) fn sent(&mut self, weight: usize) {
        self.in_flight += weight;
    }

    /// So much is answered, or will not be.
    pub(super) fn ended(&mut self, weight: usize) {
        self.in_flight = self.in_flight.saturating_sub(weight);
    }
}

impl Batch {
    pub(super) fn is_full(&self) -> bool {
        self.ops.len() >= MOST || self.bytes >= ENOUGH_BYTES
    }

    /// Whether it has no node in the queue of this lock yet; it has one from now on.
    pub(super) fn joins(&mut self, key: &LockKey) -> bool {
        self.joined.insert(key.clone())
    }

    pub(super) fn add(&mut self, write: Write) {
        self.bytes += write.op.bytes();
        self.ops.push(write.op);
        self.members.push((write.turn, write.step));
    }

    /// A lone write needs no transaction.
    pub(super) fn op(&mut self) -> Option<Op> {
        match self.ops.len() {
            0 | 1 => self.ops.pop(),
            _ => Some(Op::Multi(std::mem::take(&mut self.ops))),
        }
    }
}
