//! The locks that are released, because the work has ended, its lease was lost, or no caller wants them
//! any more.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::{Operations, Releasing};
use crate::backend::Request;
use crate::base::clock::Moment;
use crate::driver::delivery::send;
use crate::driver::ended::{Ended, HowItEnded};
use crate::held::lease::{InUse, Lease};
use crate::telemetry::events::{self, End};
use crate::types::answer::Answer;
use crate::types::error::{Cause, LockError};
use crate::types::terms::{LeaseId, Terms};
use crate::types::ticket_id::TicketId;

impl Operations {
    pub(super) fn release(&mut self, now: Moment, id: LeaseId, answer: Option<Answer<bool>>) {
        let stopped = self.watchdog.end_seen_first(id, now);
        if let Some(lease) = self.watchdog.forget(id) {
            self.give_up_downgrade(&lease);
            // Guards and bodies that still use the lease learn that it is over.
            lease.end();
            if !lease.is_limit() {
                if let Some(end) = stopped {
                    tell(now, &lease, end);
                }
                self.let_go(now, &lease, stopped.unwrap_or(End::Kept), answer);
            }
            return;
        }
        self.stop_keeping(now, id);
        if let Some(answer) = answer {
            // It was lost before, and is released already or about to be.
            send(answer, Ok(false));
        }
    }

    /// Lets a ticket take the place of a lease, unless a poll runs under it, which nobody could
    /// stop.
    pub(super) fn issue(
        &mut self,
        now: Moment,
        id: LeaseId,
        ticket: TicketId,
        time: Duration,
        answer: Answer<bool>,
    ) {
        let Some(lease) = self.watchdog.forget(id) else {
            return self.release(now, id, Some(answer));
        };
        lease.end();
        if lease.in_use() == InUse::ByPoll {
            let refused = LockError::invalid("ticket", "a body runs under the lock at this moment");
            send(answer, Err(refused));
            return self.let_go(now, &lease, End::Kept, None);
        }
        let terms = Arc::clone(&lease.terms);
        self.requests.push(Request::Issue { id, ticket, time });
        let end = End::Issued(now.since(lease.granted));
        self.expect_release(now, terms, end, Some(answer));
    }

    /// Adopts a ticket for nobody, so that its lock is released: as soon as it is known whether
    /// the store has it.
    pub(super) fn take_back(&mut self, now: Moment, terms: Arc<Terms>) {
        if let Some(releasing) = self.releasing.get_mut(&terms.id) {
            releasing.unclaimed = Some(terms);
        } else {
            let (nobody, _) = oneshot::channel();
            let (id, longest) = (terms.id, now.after(terms.ttl));
            self.begin(now, terms, nobody, true);
            if self.shutdown.is_some() {
                self.end_wait_by(id, longest);
            }
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
            let unclaimed = releasing.unclaimed.filter(|_| !matches!(result, Ok(false)));
            if let Some(answer) = releasing.answer {
                let result = result.map_err(|cause| self.unavailable(cause));
                self.answers.release(answer, releasing.terms, result);
            }
            if let Some(terms) = unclaimed {
                self.take_back(now, terms);
            }
        }
    }

    /// The store says that the lock is not ours any more. The release frees the rest, such as the lock on
    /// some of several servers.
    pub(super) fn lose(&mut self, now: Moment, lease: &Lease) {
        lease.end();
        self.give_up_downgrade(lease);
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
        self.give_up_downgrade(&lease);
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
            unclaimed: None,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Outcome;
    use crate::driver::delivery::Pile;
    use crate::driver::op::Op;
    use crate::driver::operations::scene::Scene;
    use crate::types::terms::Wait;

    const ID: LeaseId = LeaseId(1);
    const TTL_SECS: u64 = 10;
    const TICKET_SECS: u64 = 60;

    /// A ticket that lasts for a minute reached nobody. Trouble ends other acquisitions after two seconds.
    fn take_back(scene: &mut Scene) {
        let terms = Terms {
            adopts: Some(Box::new(TicketId(7))),
            wait: Wait::AtMost(Duration::from_secs(TICKET_SECS)),
            ..Terms::of(ID, "key", Duration::from_secs(TTL_SECS))
        };
        scene.take(Op::TakeBack(Arc::new(terms)));
        let sent = scene.operations.requests();
        assert!(matches!(sent[..], [Request::Acquire(_)]), "{sent:?}");
    }

    /// Whether it is given up within so many seconds.
    fn is_given_up_within(scene: &mut Scene, secs: u64) -> bool {
        for _ in 0..secs {
            scene.tick_after(Duration::from_secs(1));
        }
        let sent = scene.operations.requests();
        sent.iter().any(|it| matches!(it, Request::Abandon(ID)))
    }

    #[test]
    fn a_ticket_is_taken_back_for_as_long_as_it_lasts() {
        let mut scene = Scene::new(Wait::AtMost(Duration::from_secs(2)));
        take_back(&mut scene);
        scene.settle(Outcome::Trouble {
            id: ID,
            cause: Arc::from(Box::from("refused")),
            soon: false,
        });
        assert!(!is_given_up_within(&mut scene, TICKET_SECS - 1));
        assert!(is_given_up_within(&mut scene, 1));
    }

    #[test]
    fn a_shutdown_waits_for_a_ticket_to_be_taken_back() {
        for shut_down_first in [false, true] {
            let mut scene = Scene::new(Wait::AtMost(Duration::from_secs(2)));
            let (answer, _) = oneshot::channel();
            let mut shut_down = Some(Op::ShutDown(answer));
            if shut_down_first {
                scene.hold(2);
                scene.take(shut_down.take().expect("once"));
                drop(scene.operations.requests());
            }
            take_back(&mut scene);
            if let Some(op) = shut_down {
                scene.take(op);
            }
            assert!(!is_given_up_within(&mut scene, TTL_SECS - 1));
            assert!(is_given_up_within(&mut scene, 1));
        }
    }

    /// Hears when nothing is left to be released.
    fn flush(scene: &mut Scene) -> std::sync::mpsc::Receiver<()> {
        let (answer, flushed) = std::sync::mpsc::channel();
        scene.take(Op::Flush(answer));
        flushed
    }

    /// A program that ends leaves no lock behind.
    #[test]
    fn the_last_manager_waits_for_a_ticket_to_be_taken_back() {
        let mut scene = Scene::new(Wait::Forever);
        take_back(&mut scene);
        let flushed = flush(&mut scene);
        scene.tick_after(Duration::ZERO);
        assert!(flushed.try_recv().is_err());
        scene.settle(Outcome::NoTicket { id: ID });
        scene.tick_after(Duration::ZERO);
        assert!(flushed.try_recv().is_ok());
    }

    /// Its lock is released before anybody hears that there is nothing left to do.
    #[test]
    fn the_last_manager_waits_for_the_release_of_a_ticket_that_it_took_back() {
        let mut scene = Scene::new(Wait::Forever);
        take_back(&mut scene);
        let flushed = flush(&mut scene);
        scene.settle(granted(&scene));
        scene.tick_after(Duration::ZERO);
        let sent = scene.operations.requests();
        assert!(matches!(sent[..], [Request::Abandon(ID)]), "{sent:?}");
        assert!(flushed.try_recv().is_err());
        scene.settle(Outcome::Released {
            id: ID,
            result: Ok(true),
        });
        scene.tick_after(Duration::ZERO);
        assert!(flushed.try_recv().is_ok());
    }

    fn granted(scene: &Scene) -> Outcome {
        Outcome::Granted {
            id: ID,
            fence: 1,
            token: Some(1),
            since: scene.clock.now(),
            ttl: Duration::from_secs(TTL_SECS),
        }
    }

    /// A holder whose lease ends, and that releases its lock before the driver has looked at the clock; how that ends.
    fn end_of_a_lease(renew: bool, is_stopped: bool) -> End {
        let mut scene = Scene::new(Wait::Forever);
        let terms = Terms {
            renew,
            ..Terms::of(ID, "key", Duration::from_secs(TTL_SECS))
        };
        let (reply, mut answer) = oneshot::channel();
        let terms = terms.into();
        scene.take(Op::Acquire { terms, reply });
        scene.settle(granted(&scene));
        scene.operations.deliver(&Pile::default());
        let guard = answer.try_recv().expect("an answer").expect("a lock");
        let guard = guard.deliver().expect("it is held");
        scene.clock.advance(Duration::from_secs(TTL_SECS));
        if is_stopped {
            guard.lease().stopped();
        }
        scene.take(Op::Release {
            id: ID,
            answer: None,
        });
        scene.operations.releasing.remove(&ID).expect("sent").end
    }

    // Section: guarantees.md#watching-a-lock
    #[test]
    fn a_loss_that_the_body_has_noticed_first_is_a_loss() {
        let of_renewed = end_of_a_lease(true, true);
        assert!(matches!(of_renewed, End::Lost(_)), "{of_renewed:?}");
        let of_fixed = end_of_a_lease(false, true);
        assert!(matches!(of_fixed, End::Limited(_)), "{of_fixed:?}");
        let of_finished = end_of_a_lease(true, false);
        assert!(matches!(of_finished, End::Kept(_)), "{of_finished:?}");
    }

    #[test]
    fn a_ticket_that_is_gone_is_not_looked_for() {
        let mut scene = Scene::new(Wait::Forever);
        take_back(&mut scene);
        scene.settle(Outcome::NoTicket { id: ID });
        assert!(scene.operations.is_idle());
    }
}
