//! The locks that are let go of, because the work has ended, its lease was lost, or
//! nobody wants them any more.

use std::sync::Arc;
use std::time::Duration;

use super::{Delivery, Operations, Releasing};
use crate::backend::Request;
use crate::base::clock::Moment;
use crate::held::lease::Lease;
use crate::vocabulary::answer::Answer;
use crate::vocabulary::error::Cause;
use crate::vocabulary::events::{self, End};
use crate::vocabulary::terms::{LeaseId, Terms};

impl Operations {
    pub(super) fn release(&mut self, now: Moment, id: LeaseId, answer: Option<Answer<bool>>) {
        if let Some(lease) = self.watchdog.forget(id) {
            // Whoever still looks at the lease is told that it is over.
            lease.end();
            if !lease.is_limit() {
                self.let_go(now, &lease, End::Kept, answer);
            }
        } else if let Some(answer) = answer {
            // It was lost before, and is released already or about to be.
            let _ = answer.send(Ok(false));
        }
    }

    pub(super) fn released(&mut self, now: Moment, id: LeaseId, result: Result<bool, Cause>) {
        if let Some(releasing) = self.releasing.remove(&id) {
            let took = now.since(releasing.since);
            events::released(&releasing.terms, releasing.end, took, &result);
            if let Some(answer) = releasing.answer {
                let result = result.map_err(|cause| self.unavailable(cause));
                self.answers.push(Delivery::Release(answer, result));
            }
        }
    }

    /// The lock is not ours any more, or may not be. The release is a best
    /// effort, so that what is left of the ttl is not dead time.
    pub(super) fn lose(&mut self, now: Moment, lease: &Lease) {
        lease.end();
        if !lease.is_limit() {
            events::lost(&lease.terms, lease.fence, now.since(lease.granted));
            self.let_go(now, lease, End::Lost, None);
        }
    }

    /// The lock has been ours for as long as it may be. At the end of a limit, the lock
    /// stays with the call that was joined.
    pub(super) fn limit(&mut self, now: Moment, lease: &Lease) {
        lease.end();
        if !lease.is_limit() {
            events::limited(&lease.terms, lease.fence, now.since(lease.granted));
            self.let_go(now, lease, End::Limited, None);
        }
    }

    /// A lock that its caller has not got was of no use, and does not rest.
    fn let_go(
        &mut self,
        now: Moment,
        lease: &Lease,
        end: impl FnOnce(Duration) -> End,
        answer: Option<Answer<bool>>,
    ) {
        let (terms, held) = (Arc::clone(&lease.terms), now.since(lease.granted));
        if lease.has_arrived() {
            self.requests.push(Request::Release(terms.id));
            self.expect_release(now, terms, end(held), answer);
        } else {
            self.abandon(now, terms, End::Untaken(held), answer);
        }
    }

    pub(super) fn abandon(
        &mut self,
        now: Moment,
        terms: Arc<Terms>,
        end: End,
        answer: Option<Answer<bool>>,
    ) {
        self.requests.push(Request::Abandon(terms.id));
        self.expect_release(now, terms, end, answer);
    }

    fn expect_release(
        &mut self,
        since: Moment,
        terms: Arc<Terms>,
        end: End,
        answer: Option<Answer<bool>>,
    ) {
        let id = terms.id;
        let releasing = Releasing {
            terms,
            answer,
            end,
            since,
        };
        self.releasing.insert(id, releasing);
    }
}
