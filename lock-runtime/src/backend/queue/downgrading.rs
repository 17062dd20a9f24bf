//! Writers that go on as readers.

use std::sync::Arc;

use super::claim::{Downgrade, Stage};
use super::protocol::call::Bearer;
use super::protocol::reply::Reply;
use super::protocol::step::Step;
use super::protocol::trouble::Trouble;
use super::{PAUSE, Queue};
use crate::backend::Outcome;
use crate::base::clock::Moment;
use crate::types::kind::Kind;
use crate::types::terms::LeaseId;

impl<S: Step> Queue<S> {
    /// Whoever follows in a chain queues again, since a reader has no lock to hand over to a writer:
    /// first, so that nobody who came later is let in before.
    pub(super) fn downgrade(&mut self, now: Moment, id: LeaseId) {
        let Some(claim) = self.claims.get_mut(&id).filter(|it| it.is_held()) else {
            return;
        };
        Arc::make_mut(&mut claim.bearer.terms).kind = Kind::Read;
        claim.downgrade = Some(Downgrade::Asked);
        let chain = claim.bearer.token;
        for follower in self.break_up(now, chain) {
            self.retry(now, follower);
        }
        self.retry(now, id);
    }

    /// An answer that is lost is asked for again: what the server has done it does not do twice.
    pub(super) fn downgrade_replied(
        &mut self,
        now: Moment,
        bearer: &Bearer,
        result: Result<Reply<S>, Trouble>,
    ) {
        let is_asked = |downgrade| downgrade == Some(Downgrade::Asked);
        let claim = self.claim(bearer).filter(|it| is_asked(it.downgrade));
        let Some(claim) = claim else {
            return;
        };
        if let Stage::Issuing { .. } = claim.stage {
            return self.downgraded_before_its_ticket(now, bearer, result);
        }
        if !claim.is_held() {
            return;
        }
        let id = claim.bearer.terms.id;
        match result {
            Ok(Reply::Ours(true)) => {
                claim.downgrade = Some(Downgrade::Done);
                let result = Ok(());
                self.claims.report(Outcome::Downgraded { id, result });
            }
            Ok(_) => self.lost(now, id),
            Err(Trouble::Never(cause)) => {
                let result = Err(cause);
                self.claims.report(Outcome::Downgraded { id, result });
            }
            Err(Trouble::NotRun) => self.retry(now, id),
            Err(_) => self.claims.schedule(now.after(PAUSE), id),
        }
    }
}
