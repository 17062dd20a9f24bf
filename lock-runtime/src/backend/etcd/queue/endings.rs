//! How claims end.

use super::Queue;
use super::claim::{Claim, Stage};
use crate::backend::Outcome;
use crate::backend::claims::UNCONFIRMED;
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
        claim.awaits = false;
        claim.stage = Stage::Leaving;
        self.go_on(now, id);
    }

    /// A lock that was held is not ours any more.
    pub(super) fn lose(&mut self, id: LeaseId) {
        if let Some(claim) = self.claims.remove(&id) {
            self.forget(&claim);
            self.claims.report(Outcome::NotHeld { id });
        }
    }

    /// Something is in the way of an acquisition for now.
    pub(super) fn trouble(&mut self, id: LeaseId, trouble: &Trouble) {
        if self.claims.get(&id).is_some_and(Claim::acquires) {
            self.claims.report(Outcome::Trouble {
                id,
                cause: trouble.cause(),
                soon: matches!(trouble, Trouble::Unknown(_)),
            });
        }
    }

    /// An acquisition is refused for good; its entry, if there is one, is deleted.
    pub(super) fn fail(&mut self, now: Moment, id: LeaseId, cause: Cause) {
        self.claims.report(Outcome::Failed { id, cause });
        self.leave(now, id);
    }

    /// The driver need not wait for a release that is not confirmed in time; the entry
    /// is deleted all the same.
    pub(super) fn report_if_late(&mut self, now: Moment, id: LeaseId) {
        let claim = self.claims.get(&id);
        let Some(until) = claim.and_then(|claim| claim.leaving) else {
            return;
        };
        if self.claims.has_ended(id) {
            return;
        }
        if now < until {
            self.claims.schedule(until, id);
        } else {
            let said = || Trouble::said(UNCONFIRMED);
            let result = Err(self.down.clone().unwrap_or_else(said).cause());
            self.claims.report(Outcome::Released { id, result });
        }
    }

    /// It is not ours any more, or never was; whether it was until now.
    pub(super) fn released(&mut self, id: LeaseId, result: Result<bool, Cause>) {
        self.retire(Outcome::Released { id, result });
    }

    /// Forgets a claim that ends with this outcome.
    pub(super) fn retire(&mut self, outcome: Outcome) {
        if let Some(claim) = self.claims.retire(outcome) {
            self.forget(&claim);
        }
    }

    fn forget(&mut self, claim: &Claim) {
        if let Some(watch) = claim.watch {
            self.watches.end(watch);
        }
        self.key_orders.quit(&claim.terms.key, claim.terms.id);
        if let Some(session) = self.sessions.get_mut(&claim.ttl()) {
            session.users -= 1;
        }
    }
}
