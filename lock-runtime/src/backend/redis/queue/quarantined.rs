//! A server that may have forgotten locks: until the last of them has ended nothing is
//! granted. What is held is renewed, and ends without being handed on.

use std::time::Duration;

use super::claim::Claim;
use super::quarantine::Quarantine;
use super::{Queue, Stage};
use crate::backend::redis::protocol::reply::Trouble;
use crate::base::clock::Moment;

impl Queue {
    /// The connection that is open now is to a server that grants nothing for this time.
    pub(crate) fn quarantined(&mut self, now: Moment, left: Option<Duration>) {
        self.quarantine = left.map(|left| Quarantine::new(now, left));
    }

    /// Why nothing can be acquired.
    pub(super) fn obstacle(&self) -> Option<&Trouble> {
        let quarantine = self.quarantine.as_ref().map(|it| &it.trouble);
        self.down.as_ref().or(quarantine)
    }

    /// Those who want a lock are told that they have to wait.
    pub(super) fn tell_of_quarantine(&mut self) {
        let Some(quarantine) = &self.quarantine else {
            return;
        };
        let trouble = quarantine.trouble.clone();
        let wants = |claim: &Claim| matches!(claim.stage, Stage::Unsent | Stage::Unsure);
        for id in self.ids_of(wants) {
            self.trouble(id, &trouble);
        }
    }

    /// Grants again once its time has come.
    pub(super) fn end_quarantine(&mut self, now: Moment) {
        if self.quarantine.take_if(|it| it.ends <= now).is_some() {
            self.rooms.ask_all(now, |_| true);
            for id in self.ids_of(|claim| claim.stage == Stage::Unsent) {
                self.retry(now, id);
            }
        }
    }
}
