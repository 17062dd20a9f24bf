//! A store as short as one can be: exclusive locks within one manager. ARCHITECTURE.md
//! shows its middle as the frame of a new store, and a test locks with it.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::backend::capabilities::{Capabilities, Names};
use crate::backend::scheme::Scheme;
use crate::backend::setup::Setup;
use crate::backend::{Backend, Connecting, Outcome, Request, Target};
use crate::base::clock::{Clock, Moment, Sleep};
use crate::types::error::LockError;
use crate::types::health::Health;
use crate::types::holder::{Holder, Status};
use crate::types::key::LockKey;
use crate::types::query::Query;
use crate::types::terms::{LeaseId, Terms};
use crate::types::url::Url;

/// The store before it is connected.
#[derive(Debug)]
struct Blank;

impl fmt::Display for Blank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the chalkboard")
    }
}

struct Chalkboard {
    clock: Clock,
    sleep: Sleep,
    locks: HashMap<LockKey, Lock>,
    last_fence: u64,
    outcomes: VecDeque<Outcome>,
}

/// The holder of a lock, the end of its lease, and its waiters.
#[derive(Default)]
struct Lock {
    holder: Option<(Arc<Terms>, Moment)>,
    waiters: VecDeque<Arc<Terms>>,
}

pub(crate) const SCHEMES: &[Scheme] = &[Scheme::plain("chalkboard:", target)];

#[expect(clippy::unnecessary_wraps, reason = "other stores refuse some URLs")]
fn target(_url: &mut Url, _encrypted: bool) -> Result<Arc<dyn Target>, LockError> {
    Ok(Arc::new(Blank))
}

impl Target for Blank {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            store: "chalkboard",
            read: false,
            downgrade: false,
            permits: false,
            take: false,
            several_keys: false,
            min_hold: false,
            list: false,
            force_release: false,
            ask: false,
            history: false,
            fencing: true,
            fair: true,
            max_waiters: false,
            tickets: false,
            graph: false,
            answers: false,
            names: Names::Escaped,
        }
    }

    fn connect<'a>(&'a self, setup: &'a Setup) -> Connecting<'a> {
        let clock = setup.clock.clone();
        Box::pin(async { Ok(Box::new(Chalkboard::new(clock)) as Box<dyn Backend>) })
    }
}

impl Backend for Chalkboard {
    fn submit(&mut self, now: Moment, request: Request) {
        match request {
            // `Granted`, now or later; until then `Waiting`, or `Busy` for a try.
            Request::Acquire(terms) => self.enqueue(now, terms),
            // `Renewed` or `NotHeld`.
            Request::Renew(id) => self.renew(now, id),
            // `Released`, with whether it was held.
            Request::Abandon(id) | Request::Release(id) => self.leave(now, id),
            // Its reply; without the capabilities come only `Status`, `Health` and `Diagnose`.
            Request::Query(query) => self.look(now, query),
            // The capabilities say no.
            Request::Issue { .. } | Request::Downgrade(_) => {}
        }
        self.serve(now);
    }

    fn poll_outcome(&mut self, cx: &mut Context<'_>) -> Poll<Outcome> {
        loop {
            if let Some(outcome) = self.outcomes.pop_front() {
                return Poll::Ready(outcome);
            }
            // Woken when a lease ends and the lock has waiters.
            let next = self.next_end();
            if self.sleep.poll_until(cx, &self.clock, next).is_pending() {
                return Poll::Pending;
            }
            self.serve(self.clock.now());
        }
    }
}

impl Chalkboard {
    fn new(clock: Clock) -> Self {
        Self {
            clock,
            sleep: Sleep::default(),
            locks: HashMap::new(),
            last_fence: 0,
            outcomes: VecDeque::new(),
        }
    }

    fn enqueue(&mut self, now: Moment, terms: Arc<Terms>) {
        let lock = self.locks.entry(terms.key.clone()).or_default();
        let holder = lock.holder_at(now).map(Box::new);
        let id = terms.id;
        if holder.is_some() && terms.wait.is_try() {
            return self.outcomes.push_back(Outcome::Busy { id, holder });
        }
        if holder.is_some() {
            self.outcomes.push_back(Outcome::Waiting { id, holder });
        }
        lock.waiters.push_back(terms);
    }

    fn renew(&mut self, now: Moment, id: LeaseId) {
        let holders = self.locks.values_mut().flat_map(|lock| &mut lock.holder);
        let mut ours = holders.filter(|(terms, end)| terms.id == id && now < *end);
        self.outcomes.push_back(match ours.next() {
            Some((terms, end)) => {
                *end = now.after(terms.ttl);
                let (since, ttl) = (now, terms.ttl);
                Outcome::Renewed { id, since, ttl }
            }
            None => Outcome::NotHeld { id },
        });
    }

    fn leave(&mut self, now: Moment, id: LeaseId) {
        let mut held = false;
        for lock in self.locks.values_mut() {
            lock.waiters.retain(|terms| terms.id != id);
            let ours = lock.holder.take_if(|(terms, _)| terms.id == id);
            held |= ours.is_some_and(|(_, end)| now < end);
        }
        let result = Ok(held);
        self.outcomes.push_back(Outcome::Released { id, result });
    }

    fn look(&self, now: Moment, query: Query) {
        match query {
            Query::Status(key, reply) => {
                let lock = self.locks.get(&key);
                let status = Status {
                    holders: lock.and_then(|it| it.holder_at(now)).into_iter().collect(),
                    waiting: lock.map_or(0, |it| it.waiters.len()),
                    ..Status::free(key)
                };
                drop(reply.send(Ok(status)));
            }
            Query::Health(reply) => drop(reply.send(Ok(Health::reached(Duration::ZERO)))),
            Query::Diagnose(reply) => drop(reply.send(Ok(Vec::new()))),
            // The capabilities say no.
            Query::List(..)
            | Query::Overview(..)
            | Query::ForceRelease(..)
            | Query::Ask(..)
            | Query::History(..) => {}
        }
    }

    /// Gives every lock that is free to its first waiter.
    fn serve(&mut self, now: Moment) {
        for lock in self.locks.values_mut() {
            if lock.holder_at(now).is_some() {
                continue;
            }
            lock.holder = lock.waiters.pop_front().map(|terms| {
                self.last_fence += 1;
                self.outcomes.push_back(Outcome::Granted {
                    id: terms.id,
                    fence: self.last_fence,
                    token: None,
                    since: now,
                    ttl: terms.ttl,
                });
                let end = now.after(terms.ttl);
                (terms, end)
            });
        }
        self.locks.retain(|_, lock| lock.holder.is_some());
    }

    fn next_end(&self) -> Option<Moment> {
        let awaited = self.locks.values().filter(|lock| !lock.waiters.is_empty());
        awaited
            .filter_map(|lock| Some(lock.holder.as_ref()?.1))
            .min()
    }
}

impl Lock {
    fn holder_at(&self, now: Moment) -> Option<Holder> {
        let (terms, end) = self.holder.as_ref()?;
        (now < *end).then(|| Holder::here(terms, end.since(now)))
    }
}
