//! A server that may have forgotten locks: until the last of them has ended nothing is
//! granted. What is held is renewed, and ends without being handed on.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use super::claim::Claim;
use super::quarantine::Quarantines;
use super::{Queue, Stage};
use crate::backend::redis::protocol::reply::Trouble;
use crate::base::clock::Moment;
use crate::types::key::LockKey;

impl Queue {
    /// The connection that is open now is to a server that grants nothing for this time.
    pub(crate) fn quarantined(&mut self, now: Moment, left: Option<Duration>) {
        self.quarantines = Quarantines::of_server(now, left);
    }

    /// The node that serves these slots grants nothing until then. It stays so where they
    /// move to another node.
    pub(crate) fn close(&mut self, now: Moment, slots: BTreeSet<u16>, ends: Moment) {
        if self.quarantines.close(now, slots, ends) {
            // What is held ends without being handed on.
            for chain in self.chains.of(|key| self.quarantines.of(key).is_some()) {
                self.break_up(now, chain);
            }
            self.tell_of_quarantine();
        }
    }

    /// Why this lock cannot be acquired.
    pub(super) fn obstacle(&self, key: &LockKey) -> Option<&Trouble> {
        let quarantine = || self.quarantines.of(key).map(|it| &it.trouble);
        self.down.as_ref().or_else(quarantine)
    }

    /// Those who want a lock hear that they have to wait.
    pub(super) fn tell_of_quarantine(&mut self) {
        let wants = |claim: &Claim| matches!(claim.stage, Stage::Unsent | Stage::Unsure);
        for id in self.claims.ids(wants) {
            let claim = self.claims.get(&id);
            let quarantine = claim.and_then(|it| self.quarantines.of(&it.ticket.terms.key));
            if let Some(trouble) = quarantine.map(|it| it.trouble.clone()) {
                self.trouble(id, &trouble);
            }
        }
    }

    /// Until when nothing is granted, by the clock of this machine.
    pub(crate) fn quarantined_until(&self) -> Option<SystemTime> {
        self.quarantines.last().map(|it| it.until)
    }

    /// Grants again once its time has come.
    pub(super) fn end_quarantine(&mut self, now: Moment) {
        if self.quarantines.has_ended(now) {
            self.waiters.ask_all(now, |_| true);
            for id in self.claims.ids(|claim| claim.stage == Stage::Unsent) {
                self.retry(now, id);
            }
        }
    }
}
