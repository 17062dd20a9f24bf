//! The locks that are released, because the work has ended, its lease was lost, or no caller wants them
//! any more.

use std::sync::Arc;
use std::time::Duration;

use super::{Operations, Releasing};
use crate::backend::Request;
use crate::base::clock::Moment;
use crate::driver::ended::{Ended, HowItEnded};
use crate::held::lease::Lease;
use crate::telemetry::events::{self, End};
use crate::types::answer::Answer;
use crate::types::error::Cause;
use crate::types::terms::{LeaseId, Terms};

impl Operations {
    pub(super) fn release(&mut self, now: Moment, id: LeaseId, answer: Option<Answer<bool>>) {
        if let Some(lease) = self.watchdog.forget(id) {
            // Guards and bodies that still use the lease learn that it is over.
            lease.end();
            if !lease.is_limit() {
                self.let_go(now, &lease, End::Kept, answer);
            }
            return;
        }
        self.stop_keeping(now, id);
        if let Some(answer) = answer {
            // It was lost before, and is released already or about to be.
            let _ = answer.send(Ok(false));
        }
    }

    /// Releases the lock of a lease that has ended, if that has not been done.
    pub(super) fn stop_keeping(&mut self, now: Moment, id: LeaseId) {
        if let Some(ended) = self.ended.forget(id) {
            self.let_go_of(now, &ended);
        }
    }

    pub(super) fn stop_keeping_what_is_due(&mut self, now: Moment) {
        while let Some(ended) = self.ended.due(now) {
            self.let_go_of(now, &ended);
        }
    }

    pub(super) fn poll_returned(&mut self, now: Moment, id: LeaseId) {
        if let Some(ended) = self.ended.poll_returned(id, now) {
            self.let_go_of(now, &ended);
        }
    }

    pub(super) fn released(&mut self, now: Moment, id: LeaseId, result: Result<bool, Cause>) {
        if let Some(releasing) = self.releasing.remove(&id) {
            let took = now.since(releasing.since);
            events::released(&releasing.terms, releasing.end, took, &result);
            if let Some(answer) = releasing.answer {
                let result = result.map_err(|cause| self.unavailable(cause));
                self.answers.release(answer, releasing.terms, result);
            }
        }
    }

    /// The store says that the lock is not ours any more. The release frees the rest, such as the lock on
    /// some of several servers.
    pub(super) fn lose(&mut self, now: Moment, lease: &Lease) {
        lease.end();
        if !lease.is_limit() {
            tell(now, lease, End::Lost);
            self.let_go(now, lease, End::Lost, None);
        }
    }

    /// A lease has ended here, and ends at the server at `ends`: the lock is released as soon as no code acts
    /// under it, so that the rest of the ttl is not dead time. At the end of a limit, the lock stays with the
    /// outer call.
    pub(super) fn lapse(&mut self, now: Moment, lease: Arc<Lease>, ends: Moment, end: HowItEnded) {
        let at = lease.deadline().min(now);
        // Before anybody looks at what runs under it.
        lease.end();
        if lease.is_limit() {
            return;
        }
        tell(now, &lease, end);
        let ended = Ended {
            lease,
            at,
            ends,
            end,
        };
        if let Some(ended) = self.ended.keep(now, ended) {
            self.let_go_of(now, &ended);
        }
    }

    fn let_go_of(&mut self, now: Moment, ended: &Ended) {
        self.let_go(now, &ended.lease, ended.end, None);
    }

    /// A lock that was never delivered to its caller skips the cooldown.
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

/// The end of a lease that its caller never had is not reported: no work had begun.
fn tell(now: Moment, lease: &Lease, end: HowItEnded) {
    if !lease.has_arrived() {
        return;
    }
    let held = now.since(lease.granted);
    match end(held) {
        End::Limited(_) => events::limited(&lease.terms, lease.fence, held),
        _ => events::lost(&lease.terms, lease.fence, held),
    }
}
