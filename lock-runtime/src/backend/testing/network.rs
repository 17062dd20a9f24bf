//! A network between a manager and its store, which tests cut and slow down.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::backend::{Backend, Outcome, Request};
use crate::base::clock::{Clock, Moment, Sleep};
use crate::types::error::Cause;
use crate::types::terms::{LeaseId, Terms};

/// How the network is, shared between the store and the test.
#[derive(Debug, Default)]
pub(crate) struct Network(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    is_cut: bool,
    delay: Duration,
    /// Wakes the task that polls the store.
    waker: Option<Waker>,
}

impl Network {
    pub(crate) fn set_cut(&self, is_cut: bool) {
        let mut state = self.state();
        state.is_cut = is_cut;
        if let Some(waker) = state.waker.take() {
            drop(state);
            waker.wake();
        }
    }

    /// Each request is on the way for so long.
    pub(crate) fn set_delay(&self, delay: Duration) {
        self.state().delay = delay;
    }

    /// Whether it is cut; a change wakes `cx`.
    fn poll_cut(&self, cx: &mut Context<'_>) -> bool {
        let mut state = self.state();
        state.waker = Some(cx.waker().clone());
        state.is_cut
    }

    fn delay(&self) -> Duration {
        self.state().delay
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A store at the other end of a network.
pub(crate) struct Remote<B> {
    store: B,
    network: Arc<Network>,
    clock: Clock,
    is_cut: bool,
    /// Requests on the way, with their times of arrival.
    on_the_way: VecDeque<(Moment, Request)>,
    sleep: Sleep,
    /// Acquisitions without an outcome; the store knows them only while the network is whole.
    waiting: BTreeMap<LeaseId, Arc<Terms>>,
    /// Those that were taken back from the store, and whose last answer is still to come.
    withdrawn: BTreeSet<LeaseId>,
    failures: VecDeque<Outcome>,
    /// Asked for again when the network works: writers that have yet to go on as readers, and
    /// locks that nobody wants any more.
    again: Vec<Request>,
}

impl<B: Backend> Remote<B> {
    pub(crate) fn new(store: B, network: Arc<Network>, clock: Clock) -> Self {
        Self {
            store,
            network,
            clock,
            is_cut: false,
            on_the_way: VecDeque::new(),
            sleep: Sleep::default(),
            waiting: BTreeMap::new(),
            withdrawn: BTreeSet::new(),
            failures: VecDeque::new(),
            again: Vec::new(),
        }
    }

    /// Waiters lose their position in the queue when the network is cut, and ask again when it works again.
    fn adapt(&mut self, now: Moment, is_cut: bool) {
        if std::mem::replace(&mut self.is_cut, is_cut) == is_cut {
            return;
        }
        for request in std::mem::take(&mut self.again) {
            if let Request::Release(id) | Request::Abandon(id) = request {
                // Its caller has been answered.
                self.withdrawn.insert(id);
            }
            self.store.submit(now, request);
        }
        for (id, terms) in &self.waiting {
            if is_cut {
                self.withdrawn.insert(*id);
                self.store.submit(now, Request::Abandon(*id));
                self.failures.push_back(unheard(*id));
            } else {
                self.store.submit(now, Request::Acquire(Arc::clone(terms)));
            }
        }
    }

    /// A request has come to the end of its way.
    fn arrive(&mut self, now: Moment, request: Request) {
        let waited = match &request {
            Request::Acquire(terms) => {
                self.waiting.insert(terms.id, Arc::clone(terms));
                true
            }
            Request::Abandon(id) => self.waiting.remove(id).is_some(),
            _ => false,
        };
        if self.is_cut {
            self.again.extend(again(&request, waited));
            self.failures.extend(fail(request, waited));
        } else {
            self.store.submit(now, request);
        }
    }

    /// The part of a store's answer that reaches the driver.
    fn pass(&mut self, outcome: Outcome) -> Option<Outcome> {
        match &outcome {
            Outcome::Released { id, .. } if self.withdrawn.remove(id) => return None,
            Outcome::Waiting { id, .. } | Outcome::Granted { id, .. }
                if self.withdrawn.contains(id) =>
            {
                return None;
            }
            Outcome::Granted { id, .. } => _ = self.waiting.remove(id),
            outcome => {
                if let Some(id) = outcome.ended() {
                    self.waiting.remove(&id);
                }
            }
        }
        Some(outcome)
    }
}

impl<B: Backend> Backend for Remote<B> {
    fn submit(&mut self, now: Moment, request: Request) {
        let last = self.on_the_way.back().map(|(at, _)| *at);
        // No request overtakes another one.
        let at = now.after(self.network.delay()).max(last.unwrap_or(now));
        self.on_the_way.push_back((at, request));
    }

    fn poll_outcome(&mut self, cx: &mut Context<'_>) -> Poll<Outcome> {
        loop {
            let now = self.clock.now();
            let is_cut = self.network.poll_cut(cx);
            self.adapt(now, is_cut);
            while self.on_the_way.front().is_some_and(|(at, _)| *at <= now) {
                if let Some((_, request)) = self.on_the_way.pop_front() {
                    self.arrive(now, request);
                }
            }
            if let Some(failure) = self.failures.pop_front() {
                return Poll::Ready(failure);
            }
            while let Poll::Ready(outcome) = self.store.poll_outcome(cx) {
                if let Some(outcome) = self.pass(outcome) {
                    return Poll::Ready(outcome);
                }
            }
            let next = self.on_the_way.front().map(|(at, _)| *at);
            if self.sleep.poll_until(cx, &self.clock, next).is_pending() {
                return Poll::Pending;
            }
        }
    }
}

fn cause() -> Cause {
    Arc::from(Box::from("the test has cut the connection"))
}

fn unheard(id: LeaseId) -> Outcome {
    Outcome::Trouble {
        id,
        cause: cause(),
        soon: false,
    }
}

/// What of a request is made up for later, as stores do on their next connection.
fn again(request: &Request, waited: bool) -> Option<Request> {
    match *request {
        Request::Abandon(_) if waited => None,
        Request::Abandon(id) => Some(Request::Abandon(id)),
        // Nobody will get the ticket.
        Request::Release(id) | Request::Issue { id, .. } => Some(Request::Release(id)),
        Request::Downgrade(id) => Some(Request::Downgrade(id)),
        _ => None,
    }
}

/// The outcome of a request that does not get through.
fn fail(request: Request, waited: bool) -> Option<Outcome> {
    Some(match request {
        Request::Acquire(terms) => unheard(terms.id),
        Request::Abandon(id) if waited => Outcome::Released {
            id,
            result: Ok(false),
        },
        Request::Abandon(id) | Request::Release(id) | Request::Issue { id, .. } => {
            Outcome::Released {
                id,
                result: Err(cause()),
            }
        }
        Request::Renew(id) => Outcome::RenewFailed { id, cause: cause() },
        Request::Query(query) => {
            query.fail(cause());
            return None;
        }
        Request::Downgrade(_) => return None,
    })
}
