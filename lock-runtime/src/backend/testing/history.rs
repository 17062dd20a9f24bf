//! A record of the locks that a manager has taken and released, in order.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use crate::backend::{Backend, Outcome, Request};
use crate::base::clock::Moment;
use crate::types::key::LockKey;
use crate::types::query::Pattern;
use crate::types::terms::{LeaseId, Terms};

use super::orders::Orders;

/// An event of a lock; see [`Locks::history`](crate::testing::Locks::history).
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), lock_runtime::LockError> {
/// use lock_runtime::testing::{Event, Locks};
///
/// let locks = Locks::new();
/// let guard = locks.manager().lock("stock:lamp").acquire().await?;
/// let key = guard.key().clone();
/// guard.release_confirmed().await?;
/// assert_eq!(locks.history(), [Event::Acquired(key.clone()), Event::Released(key)]);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// It was taken.
    Acquired(LockKey),
    /// It was released, or the manager gave it up at the end of its lease.
    Released(LockKey),
    /// It was lost while it was held: revoked, or deleted in the store.
    Lost(LockKey),
}

/// All events so far, shared between the store and the test.
#[derive(Debug, Default)]
pub(crate) struct History(Mutex<Record>);

#[derive(Debug, Default)]
struct Record {
    held: BTreeMap<LeaseId, Arc<Terms>>,
    events: Vec<Event>,
    orders: Orders,
}

impl History {
    pub(crate) fn events(&self) -> Vec<Event> {
        self.record().events.clone()
    }

    pub(crate) fn is_held(&self, key: &LockKey) -> bool {
        self.record().held.values().any(|held| held.key == *key)
    }

    /// The first pair of locks that was asked for in both orders, in words.
    pub(crate) fn inversion(&self) -> Option<String> {
        self.record().orders.inversion()
    }

    pub(crate) fn allow_both_orders(&self, pair: [Pattern; 2]) {
        self.record().orders.allow(pair);
    }

    fn asked(&self, terms: &Arc<Terms>) {
        let record = &mut *self.record();
        // In memory, the token of an acquisition is its id.
        let ids = terms
            .holds
            .iter()
            .filter_map(|it| u64::try_from(it.token).ok());
        let held: Vec<_> = ids
            .filter_map(|id| record.held.get(&LeaseId(id)).cloned())
            .collect();
        record.orders.note(terms, &held);
    }

    fn acquired(&self, id: LeaseId, terms: Arc<Terms>) {
        let mut record = self.record();
        record.events.push(Event::Acquired(terms.key.clone()));
        record.held.insert(id, terms);
    }

    fn released(&self, id: LeaseId) {
        let mut record = self.record();
        if let Some(held) = record.held.remove(&id) {
            record.events.push(Event::Released(held.key.clone()));
        }
    }

    fn lost(&self, id: LeaseId) {
        let mut record = self.record();
        if let Some(held) = record.held.remove(&id) {
            record.events.push(Event::Lost(held.key.clone()));
        }
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A store that keeps a record.
pub(crate) struct Recorded<B> {
    store: B,
    history: Arc<History>,
    asked: BTreeMap<LeaseId, Arc<Terms>>,
}

impl<B> Recorded<B> {
    pub(crate) fn new(store: B, history: Arc<History>) -> Self {
        Self {
            store,
            history,
            asked: BTreeMap::new(),
        }
    }
}

impl<B: Backend> Backend for Recorded<B> {
    fn submit(&mut self, now: Moment, request: Request) {
        match &request {
            Request::Acquire(terms) => {
                self.history.asked(terms);
                self.asked.insert(terms.id, Arc::clone(terms));
            }
            // Whether the store hears of it or not.
            Request::Release(id) | Request::Abandon(id) | Request::Issue { id, .. } => {
                self.asked.remove(id);
                self.history.released(*id);
            }
            Request::Renew(_) | Request::Downgrade(_) | Request::Query(..) => {}
        }
        self.store.submit(now, request);
    }

    fn poll_outcome(&mut self, cx: &mut Context<'_>) -> Poll<Outcome> {
        let polled = self.store.poll_outcome(cx);
        if let Poll::Ready(outcome) = &polled {
            match outcome {
                Outcome::Granted { id, .. } => {
                    // One that nobody waits for any more is not ours.
                    if let Some(terms) = self.asked.remove(id) {
                        self.history.acquired(*id, terms);
                    }
                }
                // The manager gives it up then, which is no release any more.
                Outcome::NotHeld { id } => self.history.lost(*id),
                outcome => {
                    if let Some(id) = outcome.ended() {
                        self.asked.remove(&id);
                    }
                }
            }
        }
        polled
    }

    fn is_quiet(&self) -> bool {
        self.store.is_quiet()
    }
}
