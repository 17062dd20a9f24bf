//! How claims end, and how the driver is told.

use super::Queue;
use super::claim::{Claim, Stage};
use crate::backend::Outcome;
use crate::backend::etcd::protocol::trouble::Trouble;
use crate::base::clock::Moment;
use crate::types::error::Cause;
use crate::types::terms::LeaseId;

impl Queue {
    /// Deletes the entry; the driver waits for that as long as a lease lasts.
    pub(super) fn leave(&mut self, now: Moment, id: LeaseId) {
        self.unwatch(id);
        let claim = self.claims.get_mut(&id);
        let Some(claim) = claim.filter(|claim| claim.stage != Stage::Leaving) else {
            return;
        };
        claim.leaving.get_or_insert(now.after(claim.terms.ttl));
        // Nobody looks at the answer to a call in flight any more.
        claim.awaits = None;
        claim.stage = Stage::Leaving;
        self.go_on(now, id);
    }

    /// A lock that was held is not ours any more.
    pub(super) fn lose(&mut self, id: LeaseId) {
        self.unwatch(id);
        if let Some(claim) = self.claims.get_mut(&id) {
            claim.stage = Stage::Lost;
            self.outcomes.push_back(Outcome::NotHeld { id });
        }
    }

    /// Something is in the way of an acquisition for now.
    pub(super) fn trouble(&mut self, id: LeaseId, trouble: &Trouble) {
        if self.claims.get(&id).is_some_and(Claim::acquires) {
            self.outcomes.push_back(Outcome::Trouble {
                id,
                cause: trouble.cause(),
                soon: matches!(trouble, Trouble::Unknown(_)),
            });
        }
    }

    /// An acquisition is refused for good; its entry, if there is one, is deleted.
    pub(super) fn fail(&mut self, now: Moment, id: LeaseId, cause: Cause) {
        if let Some(claim) = self.claims.get_mut(&id) {
            if !std::mem::replace(&mut claim.told, true) {
                self.outcomes.push_back(Outcome::Failed { id, cause });
            }
            self.leave(now, id);
        }
    }

    /// The driver need not wait for a release that is not confirmed in time; the entry
    /// is deleted all the same.
    pub(super) fn tell_if_late(&mut self, now: Moment, id: LeaseId) {
        let claim = self.claims.get(&id).filter(|claim| !claim.told);
        let Some(until) = claim.and_then(|claim| claim.leaving) else {
            return;
        };
        if now < until {
            self.go_on_at(until, id);
        } else {
            let said = || Trouble::said("the release was not confirmed before the lease ended");
            let cause = self.down.clone().unwrap_or_else(said).cause();
            self.tell(id, Err(cause));
        }
    }

    /// Tells the driver, once, how a release ends.
    pub(super) fn tell(&mut self, id: LeaseId, result: Result<bool, Cause>) {
        let claim = self.claims.get_mut(&id);
        let told = claim.is_some_and(|claim| std::mem::replace(&mut claim.told, true));
        if !told {
            self.outcomes.push_back(Outcome::Released { id, result });
        }
    }

    pub(super) fn retire(&mut self, id: LeaseId, result: Result<bool, Cause>) {
        self.tell(id, result);
        self.forget(id);
    }

    pub(super) fn forget(&mut self, id: LeaseId) {
        self.unwatch(id);
        if let Some(claim) = self.claims.remove(&id) {
            self.lanes.quit(&claim.terms.key, id);
            if let Some(due) = claim.due {
                self.agenda.remove(&(due, id));
            }
            if let Some(session) = self.sessions.get_mut(&claim.ttl()) {
                session.users -= 1;
            }
        }
    }
}
