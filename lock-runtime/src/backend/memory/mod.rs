//! The store in memory: locks within one process, with the same promises as a server.

mod log;
mod store;

use std::collections::HashMap;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use once_cell::sync::Lazy;
use tokio::sync::mpsc;
use tokio::time::sleep;

use crate::backend::capabilities::Capabilities;
use crate::backend::scheme::Scheme;
use crate::backend::setup::Setup;
use crate::backend::{Backend, Connecting, Outcome, Request, Target};
use crate::base::clock::{Clock, Moment};
use crate::types::answer::Reply;
use crate::types::error::LockError;
use crate::types::health::Health;
use crate::types::key::LockKey;
use crate::types::kind::Kind;
use crate::types::query::Query;
use crate::types::terms::{LeaseId, Terms};
use crate::types::ticket_id::TicketId;
use crate::types::url::Url;

use store::{Client, Store, Waiter};

static NAMED: Lazy<Mutex<Stores>> = Lazy::new(Mutex::default);

/// Each with the clock of its managers.
type Stores = HashMap<Box<str>, (Weak<Mutex<Store>>, Clock)>;

/// `memory:` or `memory:NAME`.
#[derive(Debug)]
struct Memories {
    name: Option<Box<str>>,
}

pub(crate) const SCHEMES: &[Scheme] = &[Scheme::plain("memory:", target)];

#[expect(clippy::unnecessary_wraps, reason = "other stores refuse some URLs")]
fn target(url: &mut Url, _encrypted: bool) -> Result<Arc<dyn Target>, LockError> {
    let name = Some(&*url.place).filter(|it| !it.is_empty());
    let name = name.map(Into::into);
    Ok(Arc::new(Memories { name }))
}

impl Target for Memories {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            // All holders are in this process.
            answers: false,
            ..Capabilities::all("memory")
        }
    }

    fn connect<'a>(&'a self, setup: &'a Setup) -> Connecting<'a> {
        // No prefix has a control character in it.
        let name = self.name.as_ref();
        let name = name.map(|name| format!("{}\0{name}", setup.prefix));
        Box::pin(async move {
            let mut memory = Memory::open_soon(name.as_deref(), &setup.clock).await?;
            memory.history = setup.history;
            Ok(Box::new(memory) as Box<dyn Backend>)
        })
    }
}

impl fmt::Display for Memories {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the lock store of this process")
    }
}

/// One manager's access to a store.
pub(crate) struct Memory {
    store: Arc<Mutex<Store>>,
    clock: Clock,
    client: Client,
    /// How many grants of each lock to remember.
    history: usize,
    inbox: mpsc::UnboundedReceiver<Outcome>,
    /// Everything that this client waits for or holds.
    interests: HashMap<LeaseId, Interest>,
    /// How many of them wait for each key.
    waiting: HashMap<LockKey, usize>,
    /// Until a lease ends that this client waits for.
    sleep: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

/// An acquisition, from its request to its release.
struct Interest {
    terms: Arc<Terms>,
    waits: bool,
}

impl Memory {
    /// A manager that was dropped just now keeps its store, with its clock, for a moment.
    async fn open_soon(name: Option<&str>, clock: &Clock) -> Result<Self, LockError> {
        for _ in 0..100 {
            if let Ok(memory) = Self::open(name, clock) {
                return Ok(memory);
            }
            sleep(Duration::from_millis(10)).await;
        }
        Self::open(name, clock)
    }

    /// The store of that name, or one of its own.
    fn open(name: Option<&str>, clock: &Clock) -> Result<Self, LockError> {
        let store = name.map(|name| named(name, clock)).transpose()?;
        Ok(Self::on(store.unwrap_or_default(), clock.clone()))
    }

    /// A store of its own.
    #[cfg(feature = "testing")]
    pub(crate) fn alone(clock: Clock) -> Self {
        Self::on(Arc::default(), clock)
    }

    /// The same store for another manager.
    #[cfg(feature = "testing")]
    pub(crate) fn beside(&self) -> Self {
        Self::on(Arc::clone(&self.store), self.clock.clone())
    }

    fn on(store: Arc<Mutex<Store>>, clock: Clock) -> Self {
        let (client, inbox) = mpsc::unbounded_channel();
        Self {
            store,
            clock,
            client,
            history: 0,
            inbox,
            interests: HashMap::new(),
            waiting: HashMap::new(),
            sleep: None,
        }
    }

    fn acquire(&mut self, now: Moment, terms: Arc<Terms>) {
        let interest = Interest {
            terms: Arc::clone(&terms),
            waits: false,
        };
        self.interests.insert(terms.id, interest);
        let mut store = lock(&self.store);
        let waiter = Waiter {
            client: self.client.clone(),
            terms,
            since: now,
            keep: self.history,
        };
        store.enqueue(now, waiter);
    }

    /// Leaves the queue or releases the lock; `true` if it was held.
    fn leave(&mut self, now: Moment, id: LeaseId, cools_down: bool) -> bool {
        self.waits(id, false);
        let Some(Interest { terms, .. }) = self.interests.remove(&id) else {
            return false;
        };
        lock(&self.store).leave(now, &terms.key, &self.client, id, cools_down)
    }

    fn issue(&mut self, now: Moment, id: LeaseId, ticket: TicketId, time: Duration) -> bool {
        let Some(Interest { terms, .. }) = self.interests.remove(&id) else {
            return false;
        };
        lock(&self.store).issue(now, &terms.key, &self.client, id, (ticket, time))
    }

    fn renew(&mut self, now: Moment, id: LeaseId) -> Option<Duration> {
        let terms = &self.interests.get(&id)?.terms;
        lock(&self.store)
            .renew(now, &terms.key, &self.client, id)
            .then_some(terms.ttl)
    }

    /// `None` if the lock is not held any more.
    fn downgrade(&mut self, now: Moment, id: LeaseId) -> Option<()> {
        let interest = self.interests.get_mut(&id)?;
        Arc::make_mut(&mut interest.terms).kind = Kind::Read;
        lock(&self.store)
            .downgrade(now, &interest.terms, &self.client)
            .then_some(())
    }

    fn look(&self, now: Moment, query: Query) {
        match query {
            Query::Status(key, reply) => self.answer(reply, |it| it.status(now, &key)),
            Query::List(pattern, reply) => self.answer(reply, |it| it.list(now, &pattern)),
            Query::Overview(pattern, reply) => self.answer(reply, |it| it.overview(now, &pattern)),
            Query::ForceRelease(key, reply) => {
                self.answer(reply, |it| it.force_release(now, &key));
            }
            Query::Ask(key, reply) => self.answer(reply, |it| it.ask(now, &key)),
            Query::History(key, reply) => self.answer(reply, |it| it.history(now, &key)),
            Query::Health(reply) => self.answer(reply, |_| Health::reached(Duration::ZERO)),
            // Nothing can be wrong with it.
            Query::Diagnose(reply) => self.answer(reply, |_| Vec::new()),
        }
    }

    fn answer<T>(&self, reply: Reply<T>, find: impl FnOnce(&mut Store) -> T) {
        let found = find(&mut lock(&self.store));
        let _ = reply.send(Ok(found));
    }

    /// Hands over the locks that this client waits for and whose leases have ended;
    /// returns when the next lease ends.
    fn sweep(&mut self, now: Moment) -> Option<Moment> {
        let mut store = lock(&self.store);
        let mut next: Option<Moment> = None;
        for key in self.waiting.keys() {
            store.dispatch(now, key);
            next = store.next_end(key).into_iter().chain(next).min();
        }
        next
    }

    /// Takes note of an outcome on its way out.
    fn note(&mut self, outcome: &Outcome) {
        if let Some(id) = outcome.ended() {
            self.interests.remove(&id);
        }
        match outcome {
            Outcome::Waiting { id, .. } => {
                self.waits(*id, true);
                // Also if it has waited before: a cooldown may end sooner.
                self.sleep = None;
            }
            Outcome::Granted { id, .. } => self.waits(*id, false),
            _ => {}
        }
    }

    /// Keeps count of the waits that begin and end.
    fn waits(&mut self, id: LeaseId, waits: bool) {
        let Some(interest) = self.interests.get_mut(&id) else {
            return;
        };
        if std::mem::replace(&mut interest.waits, waits) == waits {
            return;
        }
        // The lease that ends next may be another one now.
        self.sleep = None;
        let key = &interest.terms.key;
        if waits {
            *self.waiting.entry(key.clone()).or_default() += 1;
        } else if let Some(count) = self.waiting.get_mut(key) {
            *count -= 1;
            if *count == 0 {
                self.waiting.remove(key);
            }
        }
    }
}

impl Backend for Memory {
    fn submit(&mut self, now: Moment, request: Request) {
        let outcome = match request {
            Request::Acquire(terms) => return self.acquire(now, terms),
            Request::Query(query) => return self.look(now, query),
            Request::Abandon(id) => Outcome::Released {
                id,
                result: Ok(self.leave(now, id, false)),
            },
            Request::Release(id) => Outcome::Released {
                id,
                result: Ok(self.leave(now, id, true)),
            },
            Request::Issue { id, ticket, time } => Outcome::Released {
                id,
                result: Ok(self.issue(now, id, ticket, time)),
            },
            Request::Downgrade(id) => match self.downgrade(now, id) {
                Some(()) => Outcome::Downgraded { id, result: Ok(()) },
                None => Outcome::NotHeld { id },
            },
            Request::Renew(id) => match self.renew(now, id) {
                Some(ttl) => Outcome::Renewed {
                    id,
                    since: now,
                    ttl,
                },
                None => Outcome::NotHeld { id },
            },
        };
        // We hold the other end.
        let _ = self.client.send(outcome);
    }

    fn poll_outcome(&mut self, cx: &mut Context<'_>) -> Poll<Outcome> {
        loop {
            if let Poll::Ready(Some(outcome)) = self.inbox.poll_recv(cx) {
                self.note(&outcome);
                return Poll::Ready(outcome);
            }
            if self.sleep.is_none() {
                let now = self.clock.now();
                let Some(expires) = self.sweep(now) else {
                    return Poll::Pending;
                };
                // The holder may change without this client hearing of it.
                let at = expires.min(now.after(Duration::from_secs(1)));
                let clock = self.clock.clone();
                self.sleep = Some(Box::pin(async move { clock.sleep_until(at).await }));
                continue;
            }
            if let Some(sleep) = &mut self.sleep {
                if sleep.as_mut().poll(cx).is_pending() {
                    return Poll::Pending;
                }
                self.sleep = None;
            }
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let mut store = lock(&self.store);
        for key in self.waiting.keys() {
            store.forget(key, &self.client);
        }
    }
}

/// Another clock would end the leases of other managers.
fn named(name: &str, clock: &Clock) -> Result<Arc<Mutex<Store>>, LockError> {
    let mut named = NAMED.lock().unwrap_or_else(PoisonError::into_inner);
    named.retain(|_, (store, _)| store.strong_count() > 0);
    if let Some((store, of_others)) = named.get(name)
        && let Some(store) = store.upgrade()
    {
        if !of_others.is(clock) {
            let reason =
                "the managers of a store in memory share their clock: give each a clone of it";
            return Err(LockError::invalid("clock", reason));
        }
        return Ok(store);
    }
    let store = Arc::default();
    named.insert(name.into(), (Arc::downgrade(&store), clock.clone()));
    Ok(store)
}

/// No code of a caller runs while the store is locked.
fn lock(store: &Mutex<Store>) -> MutexGuard<'_, Store> {
    store.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory")
            .field("interests", &self.interests.len())
            .finish_non_exhaustive()
    }
}
