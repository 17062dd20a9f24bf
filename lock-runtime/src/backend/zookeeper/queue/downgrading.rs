//! Writers that go on as readers. A node of a reader takes the place of the writer's, with the same number:
//! those behind it watch it, and look again.

use super::Queue;
use super::claim::{Downgrade, Stage};
use crate::backend::Outcome;
use crate::backend::zookeeper::call::{Recipient, Step, cause};
use crate::backend::zookeeper::protocol::entry::Entry;
use crate::backend::zookeeper::protocol::op::{Mode, Op};
use crate::backend::zookeeper::protocol::reply::{Reply, Stat, Trouble};
use crate::types::error::Cause;
use crate::types::terms::LeaseId;

impl Queue {
    pub(in super::super) fn downgrade(&mut self, id: LeaseId) {
        let claim = self.claims.get_mut(&id);
        let Some(claim) = claim.filter(|claim| claim.stage == Stage::Held) else {
            return self.claims.report(Outcome::NotHeld { id });
        };
        claim.downgrade = Some(Downgrade::Asked);
        // Its node goes, and somebody stays ahead of the one behind it.
        if let Some(follower) = claim.follower
            && let Some(follower) = self.claims.get_mut(&follower)
            && follower.before == Some(id)
        {
            follower.is_next = false;
        }
        self.go_on_downgrading(id);
    }

    /// Reads its node, which somebody may have written to, to ask for the lock.
    pub(super) fn go_on_downgrading(&mut self, id: LeaseId) {
        self.claims.next_turn(id);
        if let Some(node) = self.claims.get(&id).and_then(|it| it.node) {
            self.ask_entry(id, node, false, Step::Writer);
        }
    }

    pub(super) fn downgrade_answered(
        &mut self,
        id: LeaseId,
        step: Step,
        reply: Result<Reply, Trouble>,
    ) {
        match (step, reply) {
            (Step::Writer, Ok(Reply::Data { data, stat })) => self.replace(id, data, stat),
            (Step::Downgrade, Ok(_)) => self.is_reader(id),
            // It was written meanwhile.
            (Step::Downgrade, Err(Trouble::Written)) => self.go_on_downgrading(id),
            // An earlier call, whose answer was lost, may have replaced it.
            (Step::Writer | Step::Downgrade, Err(Trouble::NoNode)) => self.look_for_reader(id),
            (Step::Reader, Ok(Reply::Data { stat, .. })) => {
                let session = self.session.as_ref().map(|it| it.identity.id);
                if session == Some(stat.owner) {
                    self.is_reader(id);
                } else {
                    self.is_gone(id);
                }
            }
            (Step::Reader, Err(Trouble::NoNode)) => self.is_gone(id),
            (_, Err(trouble)) => self.is_writer(id, cause(trouble)),
            (_, Ok(_)) => self.is_writer(id, cause(Trouble::Other(0))),
        }
    }

    /// The write fails if its node has changed since it was read.
    fn replace(&mut self, id: LeaseId, data: Vec<u8>, stat: Stat) {
        let turn = self.claims.next_turn(id);
        let Some(claim) = self.claims.get(&id) else {
            return;
        };
        let Some(node) = claim.node else {
            return;
        };
        let path = self.requests.path(claim, node);
        let reader = Op::Create {
            path: self.requests.path(claim, node.downgraded()),
            data: data.clone(),
            mode: Mode::Ephemeral,
        };
        let unchanged = Op::Write {
            path: path.clone(),
            data,
            version: stat.version,
        };
        let op = Op::Multi(vec![unchanged, Op::Delete { path }, reader]);
        self.requests
            .send(op, Recipient::Claim(turn, Step::Downgrade));
    }

    fn look_for_reader(&mut self, id: LeaseId) {
        self.claims.next_turn(id);
        if let Some(node) = self.claims.get(&id).and_then(|it| it.node) {
            self.ask_entry(id, node.downgraded(), false, Step::Reader);
        }
    }

    fn is_reader(&mut self, id: LeaseId) {
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        claim.node = claim.node.map(Entry::downgraded);
        claim.downgrade = Some(Downgrade::Done);
        if claim.unwanted {
            let closing = claim.closing;
            return self.leave(id, closing);
        }
        let result = Ok(());
        self.claims.report(Outcome::Downgraded { id, result });
        self.claims.next_turn(id);
        self.look_after(id);
    }

    /// The server refuses: the lock stays with the writer, until that is released.
    fn is_writer(&mut self, id: LeaseId, cause: Cause) {
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        claim.downgrade = None;
        if claim.unwanted {
            let closing = claim.closing;
            return self.leave(id, closing);
        }
        let result = Err(cause);
        self.claims.report(Outcome::Downgraded { id, result });
    }

    /// It has neither node any more.
    fn is_gone(&mut self, id: LeaseId) {
        match self.claims.get(&id) {
            Some(claim) if claim.unwanted => self.released(id, Ok(false)),
            Some(_) => self.lost(id),
            None => {}
        }
    }
}
