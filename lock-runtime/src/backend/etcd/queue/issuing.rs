//! Lets tickets keep the entries of holders in their queues, each on a lease of its own.

use std::time::Duration;

use super::claim::{Stage, whole_seconds};
use super::{Queue, Step};
use crate::backend::etcd::protocol::call::Call;
use crate::backend::etcd::protocol::entry;
use crate::backend::etcd::protocol::messages::TxnResponse;
use crate::backend::name;
use crate::base::clock::Moment;
use crate::types::terms::LeaseId;
use crate::types::ticket_id::TicketId;

impl Queue {
    pub(super) fn issue(&mut self, now: Moment, id: LeaseId, ticket: TicketId, time: Duration) {
        let claim = self.claims.get_mut(&id);
        let Some(claim) = claim.filter(|claim| claim.is_held()) else {
            return self.released(id, Ok(false));
        };
        claim.stage = Stage::Issuing {
            ticket,
            time: whole_seconds(time),
            lease: None,
        };
        let until = now.after(claim.terms.ttl);
        claim.leaving = Some(until);
        // Nobody looks at the answer to a call in flight any more.
        claim.awaits = false;
        self.unwatch(id);
        self.claims.schedule(until, id);
        self.go_on(now, id);
    }

    pub(super) fn go_on_issuing(&mut self, now: Moment, id: LeaseId) {
        let Some(claim) = self.claims.get(&id) else {
            return;
        };
        let Stage::Issuing {
            ticket,
            time,
            lease,
        } = claim.stage
        else {
            return;
        };
        let Some(lease) = lease else {
            return self.send(now, id, Step::Lease, Call::grant(time));
        };
        let name = name::name(claim.token, &claim.terms);
        let value = entry::value(time, &name::of_ticket(ticket, &name));
        let key = claim.key.clone();
        let ticket = (self.keys.ticket(ticket), claim.as_held(key.clone()));
        let value = claim.as_held(value);
        let call = Call::issue(ticket, key, claim.modified, value, lease);
        let call = call.and(claim.end_of_grant());
        self.send(now, id, Step::Issue, call);
    }

    pub(super) fn issued(&mut self, now: Moment, id: LeaseId, txn: TxnResponse) {
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        let Stage::Issuing { ticket, .. } = claim.stage else {
            return;
        };
        if txn.succeeded {
            return self.is_issued(id);
        }
        let found = txn.ranges().next().unwrap_or_default().kvs.pop();
        match found {
            // An earlier call, whose answer was lost, has written it.
            Some(own) if entry::is_of_ticket(&own.value, ticket) => self.is_issued(id),
            // It was written meanwhile: somebody would like to have the lock.
            Some(own) if entry::is_of(&own.value, claim.token) => {
                claim.modified = own.mod_revision;
                self.go_on(now, id);
            }
            _ => self.released(id, Ok(false)),
        }
    }

    /// The entry belongs to the ticket, and the slot to the entry.
    fn is_issued(&mut self, id: LeaseId) {
        if let Some(claim) = self.claims.get_mut(&id)
            && let Some(slot) = claim.slot.take()
        {
            self.slots.give_up(&claim.terms.key, slot);
        }
        self.released(id, Ok(true));
    }

    /// A ticket that may have been written reaches nobody: its entry is deleted, whoever keeps it. A late call finds
    /// no entry to keep.
    pub(super) fn take_back(&mut self, now: Moment, id: LeaseId) {
        self.claims.resume(id);
        let Some(claim) = self.claims.get_mut(&id) else {
            return;
        };
        claim.takes_back = true;
        claim.leaving = None;
        claim.awaits = false;
        claim.stage = Stage::Leaving;
        self.go_on(now, id);
    }
}
