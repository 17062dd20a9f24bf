//! Nodes ahead, and locks that rest there: when their rest is over, whoever is next
//! deletes their nodes.
//!
//! How long a lock has rested is the difference of two times of the leader's clock: when
//! its node was created, and when the node of our session was written just now.

use super::claim::Stage;
use super::{Claims, Entry};
use crate::backend::zookeeper::call::Step;
use crate::backend::zookeeper::protocol::entry;
use crate::backend::zookeeper::protocol::reply::Stat;
use crate::base::clock::Moment;
use crate::types::holder::Holder;
use crate::types::kind::Kind;
use crate::types::terms::LeaseId;

impl Claims {
    /// A node of the line was read.
    pub(super) fn read(
        &mut self,
        now: Moment,
        id: LeaseId,
        step: Step,
        entry: Entry,
        data: &[u8],
        stat: Stat,
    ) {
        let Some(claim) = self.table.get(&id) else {
            return;
        };
        let is_permit = matches!(claim.terms.kind, Kind::Permits(_));
        let holder = entry::holder(data);
        let is_ahead = matches!(step, Step::Ahead(_));
        if is_ahead {
            let path = self.path(claim, entry);
            self.watches.node(path, id);
        }
        if entry.rests {
            return self.rests(now, id, entry, holder, stat);
        }
        if is_ahead && is_permit && stat.version > 0 {
            // It has entered since it was seen in the line.
            return self.look(id, false);
        }
        match self.waits_ahead(id, entry) {
            Some(before) => self.tell_follower(id, before),
            None => self.tell_waiter(id, Some(holder)),
        }
    }

    fn rests(&mut self, now: Moment, id: LeaseId, entry: Entry, mut holder: Holder, stat: Stat) {
        let left = entry::left(holder.remaining, stat, self.server_time);
        if left.is_zero() {
            return self.rest_is_over(id, entry, holder);
        }
        holder.remaining = Some(left);
        self.look_in(now, id, left);
        self.tell_waiter(id, Some(holder));
    }

    /// Deletes the node, which the servers may refuse. A waiter gets a message when the
    /// node is gone; a try begins again, but once only.
    fn rest_is_over(&mut self, id: LeaseId, entry: Entry, holder: Holder) {
        let Some(claim) = self.table.get_mut(&id) else {
            return;
        };
        let is_try = claim.stage == Stage::Refused;
        if claim.discarded.replace(entry) == Some(entry) && is_try {
            return self.tell_waiter(id, Some(holder));
        }
        self.discard_entry(id, entry);
        if is_try {
            self.begin(id);
        }
    }
}
