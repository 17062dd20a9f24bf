//! Acquisitions of this manager right behind each other in the queue of a lock: nobody is
//! between them, so that neither looks at the queue, which may be long.
//!
//! The servers number the nodes of a queue without gaps. Who comes right after another
//! one of ours therefore waits for that one; and when that one has held the lock and is
//! gone, nobody is ahead any more.

use super::claim::{Claim, Stage};
use super::{Entry, Queue};
use crate::backend::zookeeper::call::{Recipient, Step};
use crate::backend::zookeeper::protocol::op::Op;
use crate::backend::zookeeper::protocol::reply::{Change, Message};
use crate::types::kind::Kind;
use crate::types::terms::LeaseId;

/// Whether its position follows from that of the one right ahead of it.
fn is_plain(claim: &Claim) -> bool {
    claim.terms.kind == Kind::Exclusive && !claim.terms.wait.is_try()
}

impl Queue {
    /// Its node is going to be created: whether the queue has to be looked at then.
    pub(super) fn comes(&mut self, id: LeaseId) -> bool {
        let Some(claim) = self.claims.get(&id).filter(|it| is_plain(it)) else {
            return true;
        };
        let key = claim.terms.key.clone();
        let before = self.tails.add(&key, id, &self.claims);
        if let Some(claim) = self.claims.get_mut(&id) {
            claim.before = before;
        }
        before.is_none()
    }

    /// Its node is there: it waits for the one of ours that is right ahead, or looks.
    pub(super) fn enters_queue(&mut self, id: LeaseId) {
        let Some(claim) = self.claims.get(&id) else {
            return;
        };
        let (Some(before), Some(node)) = (claim.before, claim.node) else {
            return;
        };
        let ahead = self.claims.get_mut(&before).and_then(|ahead| {
            let entry = ahead.node.map(|it| it.entry)?;
            let is_near = entry.is_right_before(node.entry);
            is_near.then(|| {
                ahead.follower = Some(id);
                (entry, ahead.stage == Stage::Held && leaves_nothing(ahead))
            })
        });
        let Some((entry, is_next)) = ahead else {
            return self.look(id, false);
        };
        if let Some(claim) = self.claims.get_mut(&id) {
            claim.ahead = Some(entry);
            claim.is_next = is_next;
            claim.looked = true;
            claim.waited = true;
        }
        self.ask_entry(id, entry, true, Step::Ahead(entry));
    }

    /// It holds the lock, so that nobody is ahead of the one behind it when it has left.
    pub(super) fn precedes(&mut self, id: LeaseId) {
        let Some(claim) = self.claims.get(&id).filter(|it| leaves_nothing(it)) else {
            return;
        };
        if let Some(follower) = claim.follower
            && let Some(follower) = self.claims.get_mut(&follower)
            && follower.before == Some(id)
        {
            follower.is_next = true;
        }
    }

    /// Somebody has changed what a waiter watched.
    pub(super) fn woken(&mut self, id: LeaseId, message: &Message) {
        let Some(claim) = self.claims.get(&id) else {
            return;
        };
        let ahead = claim.ahead.map(|it| self.requests.path(claim, it));
        let is_gone = message.change == Change::Deleted && ahead.as_ref() == Some(&message.path);
        if is_gone {
            self.ahead_is_gone(id);
        } else {
            self.look(id, false);
        }
    }

    /// The node that it watched is gone: it enters, or looks who is ahead now.
    pub(super) fn ahead_is_gone(&mut self, id: LeaseId) {
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        let is_next = claim.is_next && claim.ahead.is_some();
        claim.is_next = false;
        claim.ahead = None;
        match claim.node.filter(|_| is_next) {
            Some(node) => {
                let path = self.requests.paths.lock(&claim.terms.key);
                let watch = false;
                let to = Recipient::Claim(self.claims.next_turn(id), Step::Changed);
                self.requests.send(Op::Read { path, watch }, to);
                // Its own node may be gone, too. That it is there after the change shows that
                // the fence, the number of the change, is smaller than that of who comes later.
                self.ask_entry(id, node.entry, true, Step::Enter);
            }
            None => self.look(id, false),
        }
    }

    /// The one of ours that waits with the node right ahead.
    pub(super) fn waits_ahead(&self, id: LeaseId, entry: Entry) -> Option<LeaseId> {
        let before = self.claims.get(&id)?.before?;
        let ahead = self.claims.get(&before)?;
        let is_waiting = ahead.stage == Stage::InQueue && ahead.node?.entry == entry;
        is_waiting.then_some(before)
    }

    /// It waits for the same holder as the one right ahead, and for that one.
    pub(super) fn report_same_holder(&mut self, id: LeaseId, before: LeaseId) {
        let ahead = self.claims.get(&before);
        let holder = ahead.and_then(|it| it.holder.as_deref().cloned());
        let crowd = holder.as_ref().map(|it| it.crowd);
        if let (Some(crowd), Some(claim)) = (crowd, self.claims.get_mut(&id)) {
            claim.crowd = crowd;
            claim.crowd.waiters += 1;
        }
        self.report_holder(id, holder);
    }
}

/// Whether nothing of it stays in the queue when it has left.
fn leaves_nothing(claim: &Claim) -> bool {
    is_plain(claim) && claim.terms.min_hold.is_none()
}
