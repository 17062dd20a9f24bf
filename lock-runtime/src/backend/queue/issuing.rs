//! Holders whose place a ticket takes.

use super::claim::{Downgrade, Stage};
use super::protocol::call::Bearer;
use super::protocol::reply::Reply;
use super::protocol::step::Step;
use super::protocol::trouble::Trouble;
use super::{PAUSE, Queue};
use crate::base::clock::Moment;
use crate::types::error::Cause;

impl<S: Step> Queue<S> {
    pub(super) fn issue_replied(
        &mut self,
        now: Moment,
        bearer: &Bearer,
        result: Result<Reply<S>, Trouble>,
    ) {
        let claim = self.claim(bearer);
        let Some(claim) = claim.filter(|it| matches!(it.stage, Stage::Issuing { .. })) else {
            return;
        };
        let id = claim.bearer.terms.id;
        match result {
            Ok(reply) => self.released(id, Ok(matches!(reply, Reply::Ours(true)))),
            Err(Trouble::Never(cause)) => self.not_issued(now, bearer, cause),
            Err(Trouble::NotRun) => self.retry(now, id),
            Err(_) => self.claims.schedule(now.after(PAUSE), id),
        }
    }

    /// After a failover, the store may have forgotten that a reader was a writer. A ticket of the writer would fit no adopter,
    /// so the store is asked for the ticket after the downgrade.
    pub(super) fn downgraded_before_its_ticket(
        &mut self,
        now: Moment,
        bearer: &Bearer,
        result: Result<Reply<S>, Trouble>,
    ) {
        let Some(claim) = self.claim(bearer) else {
            return;
        };
        let id = claim.bearer.terms.id;
        match result {
            // Even if it is not ours: an earlier call for the ticket, whose answer was lost, may have written it.
            Ok(_) => {
                claim.downgrade = Some(Downgrade::Done);
                self.retry(now, id);
            }
            Err(Trouble::Never(cause)) => self.not_issued(now, bearer, cause),
            Err(Trouble::NotRun) => self.retry(now, id),
            Err(_) => self.claims.schedule(now.after(PAUSE), id),
        }
    }

    /// The store refuses the ticket for good. The driver has forgotten the lease, so the queue releases the lock before it
    /// reports that.
    fn not_issued(&mut self, now: Moment, bearer: &Bearer, cause: Cause) {
        let Some(claim) = self.claim(bearer) else {
            return;
        };
        if let Stage::Issuing { until, .. } = claim.stage {
            claim.refused = Some(cause);
            claim.stage = Stage::Releasing {
                until,
                cools_until: now,
            };
            let id = claim.bearer.terms.id;
            self.retry(now, id);
        }
    }
}
