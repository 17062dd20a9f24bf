//! Replaces the nodes of tickets by those of their adopters, which keep their positions. The deletion of a ticket's
//! node succeeds once.

use super::Queue;
use super::claim::{Claim, Stage};
use crate::backend::Outcome;
use crate::backend::zookeeper::call::{Recipient, Step, cause};
use crate::backend::zookeeper::protocol::entry::{self, Entry};
use crate::backend::zookeeper::protocol::op::{Mode, Op};
use crate::backend::zookeeper::protocol::reply::{Reply, Stat, Trouble};
use crate::base::clock::Moment;
use crate::types::terms::LeaseId;

impl Queue {
    /// Looks for the node of the ticket, or for its own if an answer was lost. The write that asks for the time lets
    /// the server catch up with its leader first.
    pub(super) fn seek(&mut self, id: LeaseId) {
        let turn = self.claims.next_turn(id);
        if let Some(claim) = self.claims.get_mut(&id) {
            claim.stage = Stage::Seeking;
        }
        self.ask_time();
        if let Some(claim) = self.claims.get(&id) {
            self.requests.list(claim, turn, Step::Seek);
        }
    }

    pub(super) fn goes_on_adopting(
        &mut self,
        now: Moment,
        id: LeaseId,
        step: Step,
        reply: Result<Reply, Trouble>,
    ) {
        match (step, reply) {
            (Step::Seek, Ok(Reply::Children { names, .. })) => {
                self.sought(id, &Entry::queue(&names));
            }
            (Step::Ticket(ticket), Ok(Reply::Data { data, stat })) => {
                self.adopt(id, ticket, &data, stat);
            }
            (Step::Adopt(ticket), Ok(_)) => self.adopted(id, ticket),
            (Step::Adopted, Ok(Reply::Data { stat, .. })) => self.has_adopted(now, id, stat),
            // An earlier call without an answer may have replaced it.
            (Step::Adopt(_), Err(Trouble::NoNode)) => self.seek(id),
            // It was adopted, has ended or was revoked.
            (_, Err(Trouble::NoNode)) => self.no_ticket(id),
            (_, Err(trouble)) => self.not_adopted(id, trouble),
            (_, Ok(_)) => self.not_adopted(id, Trouble::Other(0)),
        }
    }

    fn sought(&mut self, id: LeaseId, queue: &[Entry]) {
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        let (token, kind, adopts) = (claim.token, claim.terms.kind, claim.terms.ticket());
        if let Some(own) = queue.iter().find(|it| !it.is_timed() && it.token == token) {
            return self.adopted(id, *own);
        }
        let session = self.session.as_ref().map(|it| it.identity.id);
        // It would be there.
        claim.adopted_in.retain(|it| Some(*it) != session);
        let is_it = |entry: &&Entry| adopts.is_some_and(|it| entry.is_of_ticket(it, kind));
        if let Some(ticket) = queue.iter().find(is_it).filter(|_| !claim.unwanted) {
            return self.ask_entry(id, *ticket, false, Step::Ticket(*ticket));
        }
        // Without that node, no late call leaves a ticket.
        match claim.former.take().filter(|it| queue.contains(it)) {
            Some(former) => {
                self.discard_entry(id, former);
                self.seek(id);
            }
            None => self.no_ticket(id),
        }
    }

    fn adopt(&mut self, id: LeaseId, ticket: Entry, data: &[u8], stat: Stat) {
        let left = entry::left(entry::holder(data).remaining, stat, self.server_time);
        if left.is_zero() {
            self.discard_entry(id, ticket);
            return self.no_ticket(id);
        }
        let turn = self.claims.next_turn(id);
        let (Some(session), Some(claim)) = (&self.session, self.claims.get_mut(&id)) else {
            return;
        };
        claim.stage = Stage::Adopting;
        claim.adopted_in.insert(session.identity.id);
        let own = Op::Create {
            path: self.requests.path(claim, ticket.adopted(claim.token)),
            data: claim.data(session.timeout),
            mode: Mode::Ephemeral,
        };
        let path = self.requests.path(claim, ticket);
        let op = Op::Multi(vec![Op::Delete { path }, own]);
        self.requests
            .send(op, Recipient::Claim(turn, Step::Adopt(ticket)));
    }

    /// Its own node is there; the number of the change that created it is the fence.
    fn adopted(&mut self, id: LeaseId, ticket: Entry) {
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        let own = ticket.adopted(claim.token);
        claim.node = Some(own);
        claim.stage = Stage::InQueue;
        if claim.unwanted {
            return self.leave(id, None);
        }
        self.claims.next_turn(id);
        self.ask_entry(id, own, false, Step::Adopted);
    }

    fn has_adopted(&mut self, now: Moment, id: LeaseId, stat: Stat) {
        let session = self.session.as_ref().map(|it| it.identity.id);
        if session == Some(stat.owner) {
            self.grant(now, id, stat.czxid);
        } else {
            // That of a session that has ended.
            self.no_ticket(id);
        }
    }

    /// The ticket is not there: others have adopted it, or it has ended. Or it was adopted for this claim, which has
    /// not heard of that before its session ended.
    fn no_ticket(&mut self, id: LeaseId) {
        let Some(claim) = self.claims.get(&id) else {
            return;
        };
        let session = self.session.as_ref().map(|it| it.identity.id);
        let mut adopted_in = claim.adopted_in.iter();
        let is_lost = !claim.unwanted && adopted_in.any(|it| Some(*it) != session);
        self.claims.retire(if is_lost {
            let cause = cause(Trouble::SessionOver);
            Outcome::Failed { id, cause }
        } else {
            Outcome::NoTicket { id }
        });
    }

    fn not_adopted(&mut self, id: LeaseId, trouble: Trouble) {
        let cause = cause(trouble);
        if let Some(node) = self.claims.get(&id).and_then(|it| it.node) {
            self.discard_entry(id, node);
        }
        let session = self.session.as_ref().map(|it| it.identity.id);
        let claim = self.claims.get_mut(&id);
        let may_be_adopted = |it: &&mut Claim| {
            let in_session = session.is_some_and(|it_is| it.adopted_in.contains(&it_is));
            it.stage == Stage::Seeking && in_session
        };
        if let Some(claim) = claim.filter(may_be_adopted) {
            // Its node may be there. It is looked for with each heartbeat.
            claim.unwanted = true;
            self.claims.report(Outcome::Failed { id, cause });
        } else {
            self.claims.retire(Outcome::Failed { id, cause });
        }
    }
}
