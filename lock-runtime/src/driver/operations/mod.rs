//! Every operation in flight and the callers that wait for it: the decisions of the driver,
//! without its I/O.

mod acquiring;
mod awaited;
#[cfg(feature = "metrics")]
mod counts;
mod downgrading;
mod releasing;
#[cfg(test)]
mod scene;
mod waiting;

use std::fmt;
use std::sync::{Arc, Weak};

use tokio::sync::oneshot;

use crate::backend::{Outcome, Request};
use crate::base::agenda::Agenda;
use crate::base::clock::{Clock, Moment};
use crate::base::numbers::Numbered;
use crate::driver::delivery::{Answers, Pile};
use crate::driver::ended::EndedLeases;
use crate::driver::limits::Limits;
use crate::driver::observers::Observers;
use crate::driver::op::Op;
use crate::driver::watchdog::{Due, Watchdog};
use crate::held::guard::LockGuard;
use crate::held::home::Home;
use crate::held::lease::Lease;
use crate::telemetry::events::{self, End};
use crate::types::answer::Answer;
use crate::types::deadline::deadline;
use crate::types::error::{Cause, LockError};
use crate::types::query::Query;
use crate::types::terms::{LeaseId, Terms};

use acquiring::{Acquiring, Progress};

/// The table of operations.
pub(crate) struct Operations {
    clock: Clock,
    limits: Limits,
    /// The recipient of releases; gone when every caller is gone.
    home: Weak<dyn Home>,
    /// The store's name in errors.
    server: Arc<str>,
    acquiring: Numbered<LeaseId, Acquiring>,
    /// When the next wait ends.
    waits: Agenda<LeaseId>,
    /// When the next acquisition has been in trouble for too long.
    troubles: Agenda<LeaseId>,
    /// When the clock was read last, while there was trouble.
    awake: Option<Moment>,
    watchdog: Watchdog,
    /// Leases whose locks are yet to be released.
    ended: EndedLeases,
    /// Releases and abandoned acquisitions whose end is not known yet.
    releasing: Numbered<LeaseId, Releasing>,
    /// Writers whose store has yet to know that they are readers.
    downgrading: Numbered<LeaseId, Answer<bool>>,
    observers: Observers,
    flushes: Vec<std::sync::mpsc::Sender<()>>,
    shutdown: Option<Shutdown>,
    requests: Vec<Request>,
    answers: Answers,
}

/// A release that was sent to the server, and that it has not confirmed.
struct Releasing {
    terms: Arc<Terms>,
    answer: Option<Answer<bool>>,
    /// The terms that take back a ticket, which nobody will get.
    unclaimed: Option<Arc<Terms>>,
    /// How it ended, and when.
    end: End,
    since: Moment,
}

struct Shutdown {
    answers: Vec<oneshot::Sender<()>>,
    grace_ends: Moment,
}

impl Operations {
    pub(crate) fn new(
        clock: Clock,
        limits: Limits,
        home: Weak<dyn Home>,
        server: Arc<str>,
    ) -> Self {
        Self {
            clock,
            limits,
            home,
            server,
            acquiring: Numbered::default(),
            waits: Agenda::default(),
            troubles: Agenda::default(),
            awake: None,
            watchdog: Watchdog::default(),
            ended: EndedLeases::default(),
            releasing: Numbered::default(),
            downgrading: Numbered::default(),
            observers: Observers::default(),
            flushes: Vec::new(),
            shutdown: None,
            requests: Vec::new(),
            answers: Answers::default(),
        }
    }

    /// Gives the callers their answers, all at once: waking callers together costs less
    /// than waking one after the other.
    pub(crate) fn deliver(&mut self, pile: &Pile) {
        pile.deliver(&mut self.answers);
    }

    /// The requests to the backend.
    pub(crate) fn requests(&mut self) -> Vec<Request> {
        std::mem::take(&mut self.requests)
    }

    pub(super) fn has_requests(&self) -> bool {
        !self.requests.is_empty()
    }

    /// Takes in the operation of a caller.
    pub(crate) fn take(&mut self, now: Moment, op: Op) {
        match op {
            Op::Acquire { terms, reply } => self.acquire(now, terms, reply),
            Op::Cancel(id) => {
                if let Some(acquiring) = self.finish(id) {
                    events::cancelled(&acquiring.terms, now.since(acquiring.started));
                    self.abandon(now, acquiring.terms, End::Withdrawn, None);
                }
            }
            Op::Release { id, answer } => self.release(now, id, answer),
            Op::Issue {
                id,
                ticket,
                time,
                answer,
            } => self.issue(now, id, ticket, time, answer),
            Op::Downgrade { id, answer } => self.downgrade(now, id, answer),
            Op::TakeBack(terms) => self.take_back(now, terms),
            Op::PollReturned(id) => self.poll_returned(now, id),
            Op::Query(query) => self.ask(query),
            Op::Observe(key, observer) => self.observers.add(now, key, observer),
            Op::Limit(lease) => self.watchdog.limit(lease),
            Op::Flush(answer) => self.flushes.push(answer),
            Op::ShutDown(answer) => self.shut_down(now, answer),
        }
    }

    /// Takes in an outcome of the backend.
    pub(crate) fn settle(&mut self, now: Moment, outcome: Outcome) {
        match outcome {
            Outcome::Granted {
                id,
                fence,
                token,
                since,
                ttl,
            } => {
                if let Some(acquiring) = self.finish(id) {
                    if acquiring.takes_back {
                        return self.abandon(now, acquiring.terms, End::Withdrawn, None);
                    }
                    let ends = deadline(since, ttl);
                    if let Some(lease) = self.lease(&acquiring.terms, (fence, token), now, ends) {
                        events::granted(&lease.terms, fence, now.since(acquiring.started));
                        if lease.terms.adopts.is_some() {
                            // A ticket is good for one adoption: its lock waits for the caller.
                            lease.receive();
                        }
                        self.watchdog.watch(Arc::clone(&lease), now, since, ttl);
                        self.answers.grant(acquiring.reply, LockGuard::new(lease));
                    } else {
                        self.abandon(now, acquiring.terms, End::Withdrawn, None);
                    }
                }
            }
            Outcome::Waiting { id, holder } => self.heard(now, id, Progress::Held(holder)),
            Outcome::Trouble { id, cause, soon } => {
                self.heard(now, id, Progress::Trouble { cause, soon });
            }
            Outcome::Busy { id, holder } => match self.finish(id) {
                Some(mut acquiring) => {
                    acquiring.heard = now;
                    let holder = holder.map(|mut holder| {
                        holder.crowd.is_full = !acquiring.terms.wait.is_try();
                        holder
                    });
                    acquiring.fail(now, Progress::Held(holder), &self.server);
                }
                // It was given up meanwhile, and nothing more will be said of it.
                None => self.released(now, id, Ok(false)),
            },
            Outcome::Failed { id, cause } => match self.finish(id) {
                Some(acquiring) => {
                    let soon = false;
                    acquiring.fail(now, Progress::Trouble { cause, soon }, &self.server);
                }
                None => self.released(now, id, Err(cause)),
            },
            Outcome::NoTicket { id } => match self.finish(id) {
                Some(acquiring) => {
                    let key = acquiring.terms.key.clone();
                    acquiring.refuse(now, LockError::InvalidTicket { key });
                }
                None => self.released(now, id, Ok(false)),
            },
            Outcome::Renewed { id, since, ttl } => {
                if let Some((lease, left)) = self.watchdog.renewed(id, now, since, ttl) {
                    events::renewed(&lease.terms, left);
                } else {
                    self.ended.renewed(id, since.after(ttl));
                }
            }
            Outcome::RenewFailed { id, cause } => {
                if let Some(lease) = self.watchdog.retry(id, now) {
                    events::renewal_failed(&lease.terms, &cause);
                }
            }
            Outcome::Wanted { id } => {
                if let Some(lease) = self.watchdog.lease(id).filter(|it| it.ask()) {
                    events::asked(&lease.terms, lease.fence);
                }
            }
            Outcome::Downgraded { id, result } => self.downgraded(id, result),
            Outcome::NotHeld { id } => {
                if let Some(lease) = self.watchdog.forget(id) {
                    self.lose(now, &lease);
                } else {
                    self.stop_keeping(now, id);
                }
            }
            Outcome::Released { id, result } => self.released(now, id, result),
        }
    }

    /// Carries out due work.
    pub(crate) fn tick(&mut self, now: Moment) {
        while let Some(id) = self.waits.due(now) {
            self.wait_ended(now, id);
        }
        self.forgive_sleep(now);
        while let Some(id) = self.troubles.due(now) {
            self.give_up(now, id);
        }
        self.awake = (!self.troubles.is_empty()).then_some(now);
        while let Some(due) = self.watchdog.due(now) {
            match due {
                Due::Renew(id) => self.requests.push(Request::Renew(id)),
                Due::Lapsed(lease, ends) => self.lapse(now, lease, ends, End::Lost),
                Due::Over(lease, ends) => self.lapse(now, lease, ends, End::Limited),
            }
        }
        if self
            .shutdown
            .as_ref()
            .is_some_and(|it| it.grace_ends <= now)
        {
            for (lease, ends) in self.watchdog.forget_all() {
                self.lapse(now, lease, ends, End::Lost);
            }
        }
        self.stop_keeping_what_is_due(now);
        self.requests.extend(self.observers.tick(now));
        if !self.flushes.is_empty() && self.has_let_go() {
            for flush in self.flushes.drain(..) {
                let _ = flush.send(());
            }
        }
        if self.has_shut_down() {
            let answers = self
                .shutdown
                .as_mut()
                .map(|it| std::mem::take(&mut it.answers));
            for answer in answers.into_iter().flatten() {
                let _ = answer.send(());
            }
        }
    }

    pub(crate) fn next_wakeup(&self) -> Option<Moment> {
        let grace = self.shutdown.as_ref().map(|it| it.grace_ends);
        [
            self.waits.next(),
            self.troubles.next(),
            self.next_heartbeat(),
            self.watchdog.next_wakeup(),
            self.ended.next_wakeup(),
            self.observers.next_wakeup(),
            grace.filter(|_| !self.watchdog.is_empty()),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Nothing is held, asked for or being released.
    pub(crate) fn is_idle(&self) -> bool {
        self.acquiring.is_empty()
            && self.releasing.is_empty()
            && !self.watchdog.holds_locks()
            && self.ended.is_empty()
    }

    /// Nothing is being released, and no ticket taken back.
    fn has_let_go(&self) -> bool {
        self.releasing.is_empty() && !self.acquiring.values().any(|it| it.takes_back)
    }

    pub(super) fn has_shut_down(&self) -> bool {
        self.shutdown.is_some() && self.is_idle()
    }

    /// A query that is dropped tells its caller of the shutdown.
    fn ask(&mut self, query: Query) {
        if self.shutdown.is_none() {
            self.requests.push(Request::Query(query));
        }
    }

    pub(super) fn unavailable(&self, cause: Cause) -> LockError {
        LockError::unavailable_at(&self.server, cause)
    }

    /// `None` if every caller is gone.
    fn lease(
        &self,
        terms: &Arc<Terms>,
        (fence, token): (u64, Option<u128>),
        granted: Moment,
        deadline: Moment,
    ) -> Option<Arc<Lease>> {
        let lease = Lease::new(
            Arc::clone(terms),
            fence,
            granted,
            deadline,
            self.clock.clone(),
            self.home.upgrade()?,
        );
        Some(Arc::new(lease.known_by(token)))
    }

    fn shut_down(&mut self, now: Moment, answer: oneshot::Sender<()>) {
        let grace_ends = now.after(self.limits.shutdown_grace);
        let shutdown = self.shutdown.get_or_insert(Shutdown {
            answers: Vec::new(),
            grace_ends,
        });
        shutdown.answers.push(answer);
        let mut waiting: Vec<_> = self.acquiring.keys().copied().collect();
        waiting.sort_unstable();
        for id in waiting {
            if let Some(taking_back) = self.acquiring.get(&id).filter(|it| it.takes_back) {
                // Like a release.
                self.end_wait_by(id, now.after(taking_back.terms.ttl));
            } else if let Some(acquiring) = self.finish(id) {
                let terms = Arc::clone(&acquiring.terms);
                acquiring.refuse(now, LockError::ShutDown);
                self.abandon(now, terms, End::Withdrawn, None);
            }
        }
    }
}

impl fmt::Debug for Operations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operations")
            .field("acquiring", &self.acquiring.len())
            .field("releasing", &self.releasing.len())
            .field("watchdog", &self.watchdog)
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}
