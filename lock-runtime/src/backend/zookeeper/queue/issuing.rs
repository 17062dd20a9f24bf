//! Lets tickets keep the positions of holders. A node that outlives the session takes the place of the holder's, and
//! ends as that of a cooldown does.

use std::time::Duration;

use super::Queue;
use super::claim::{Closing, Stage};
use crate::backend::zookeeper::call::{Recipient, Step};
use crate::backend::zookeeper::protocol::op::Op;
use crate::types::terms::LeaseId;
use crate::types::ticket_id::TicketId;

impl Queue {
    pub(in super::super) fn issue(&mut self, id: LeaseId, ticket: TicketId, time: Duration) {
        let Some(claim) = self.claims.get(&id).filter(|it| it.stage == Stage::Held) else {
            return self.released(id, Ok(false));
        };
        // Its node goes, and somebody stays ahead of the one behind it.
        if let Some(follower) = claim.follower
            && let Some(follower) = self.claims.get_mut(&follower)
            && follower.before == Some(id)
        {
            follower.is_next = false;
        }
        self.leave(id, Some(Closing::Ticket(ticket, time)));
    }

    /// The node of the holder is gone, and an earlier call without an answer may have left that of the ticket.
    pub(super) fn ask_whether_issued(&mut self, id: LeaseId) {
        let turn = self.claims.next_turn(id);
        let Some(claim) = self.claims.get(&id) else {
            return;
        };
        let (Some(node), Some(Closing::Ticket(ticket, _))) = (claim.node, claim.closing) else {
            return;
        };
        let path = self.requests.path(claim, node.ticket(ticket));
        let watch = false;
        let read = Op::Read { path, watch };
        self.requests
            .send(read, Recipient::Claim(turn, Step::Issued));
    }

    /// It is not known whether a ticket was issued: who takes it back looks for the node of its holder, too.
    pub(super) fn may_be_issued(&mut self, id: LeaseId) {
        if let Some(claim) = self.claims.get(&id)
            && let (Some(node), Some(Closing::Ticket(..))) = (claim.node, claim.closing)
        {
            self.unclaimed.insert(id, node);
        }
    }
}
