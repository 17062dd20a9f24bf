//! The waiters for each key, and when to ask the server about them again.

use std::collections::BTreeMap;
use std::time::Duration;

use super::pace::Pace;
use super::protocol::ahead::Ahead;
use super::protocol::call::Bearer;
use crate::base::agenda::Agenda;
use crate::base::clock::Moment;
use crate::types::key::LockKey;
use crate::types::terms::LeaseId;

/// Grants are pushed. Asking finds those that were lost, and shows the server that we
/// live: it skips waiters that have been silent for three times as long.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// The end of a lease is noticed within this time.
const JITTER_MS: u64 = 50;
/// How many waiters one call asks about.
const MOST: usize = 200;

/// The waiters of one connection, by key.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    /// Whether nobody ever notifies us that a lock is free.
    pub(crate) polled: bool,
    by_key: BTreeMap<LockKey, KeyWaiters>,
    agenda: Agenda<LockKey>,
    /// The waiters for the last due key that have not been asked about yet.
    unasked: Vec<Bearer>,
}

#[derive(Debug)]
struct KeyWaiters {
    waiters: BTreeMap<LeaseId, Bearer>,
    /// Its position in the agenda; `None` while questions are in flight.
    ask_at: Option<Moment>,
    /// How many of these have no answer.
    unanswered: usize,
    /// When to ask again, by the answers so far.
    ask_again: Option<Moment>,
    pace: Pace,
}

/// When to ask about a key that has this pace.
fn next(polled: bool, pace: &mut Pace, now: Moment, ahead: &Ahead) -> Moment {
    let jitter = Duration::from_millis(fastrand::u64(1..=JITTER_MS));
    let ends = ahead.left.map_or(ASK_EVERY, |left| left + jitter);
    let usual = if polled || ahead.is_foreign() {
        pace.next(now, ahead)
    } else {
        ASK_EVERY
    };
    now.after(ends.min(usual))
}

impl Waiters {
    /// When to ask about a key next, given the current holder. A foreign one notifies nobody
    /// when it lets go, and others like it are quick to take the lock.
    pub(crate) fn next(&mut self, key: &LockKey, now: Moment, ahead: &Ahead) -> Moment {
        let mut first = Pace::default();
        let waiting = self.by_key.get_mut(key);
        let pace = waiting.map_or(&mut first, |waiting| &mut waiting.pace);
        next(self.polled, pace, now, ahead)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// Whether somebody waits for it.
    pub(crate) fn has(&self, key: &LockKey) -> bool {
        self.by_key.contains_key(key)
    }

    /// A waiter knows that it is in the queue.
    pub(crate) fn join(&mut self, bearer: &Bearer, now: Moment, ahead: &Ahead) {
        let mut pace = Pace::default();
        let at = next(self.polled, &mut pace, now, ahead);
        let key = &bearer.terms.key;
        // Others of ours that wait already come first.
        let is_first = !self.has(key);
        self.join_later(bearer, at);
        if is_first && let Some(waiting) = self.by_key.get_mut(key) {
            waiting.pace = pace;
        }
    }

    /// A waiter wants to know its position, at `at` or before.
    pub(crate) fn join_later(&mut self, bearer: &Bearer, at: Moment) {
        let key = &bearer.terms.key;
        if let Some(waiting) = self.by_key.get_mut(key) {
            waiting.waiters.insert(bearer.terms.id, bearer.clone());
            if waiting.ask_at.is_some_and(|known| at < known) {
                self.schedule(key, at);
            }
        } else {
            let waiting = KeyWaiters {
                waiters: BTreeMap::from([(bearer.terms.id, bearer.clone())]),
                ask_at: None,
                unanswered: 0,
                ask_again: None,
                pace: Pace::default(),
            };
            self.by_key.insert(key.clone(), waiting);
            self.schedule(key, at);
        }
    }

    pub(crate) fn leave(&mut self, key: &LockKey, id: LeaseId) {
        let Some(waiting) = self.by_key.get_mut(key) else {
            return;
        };
        waiting.waiters.remove(&id);
        if waiting.waiters.is_empty()
            && let Some(KeyWaiters {
                ask_at: Some(at), ..
            }) = self.by_key.remove(key)
        {
            self.agenda.remove(at, key.clone());
        }
    }

    /// The next question that is due, all of it about one key.
    pub(crate) fn due(&mut self, now: Moment) -> Option<Vec<Bearer>> {
        if self.unasked.is_empty() {
            let key = self.agenda.due(now)?;
            let waiting = self.by_key.get_mut(&key)?;
            waiting.ask_at = None;
            waiting.ask_again = None;
            waiting.unanswered = waiting.waiters.len().div_ceil(MOST);
            self.unasked = waiting.waiters.values().cloned().collect();
        }
        let most = self.unasked.len().min(MOST);
        Some(self.unasked.drain(..most).collect())
    }

    /// A question was answered, or failed: the next one about its key is due `at`, once the others are answered too. Else a
    /// slow server would be asked more than it can answer.
    pub(crate) fn answered(&mut self, bearers: &[Bearer], at: Moment) {
        let key = bearers.first().map(|it| &it.terms.key);
        let waiting = key.and_then(|key| self.by_key.get_mut(key));
        let (Some(key), Some(waiting)) = (key, waiting) else {
            return;
        };
        if waiting.ask_at.is_some() {
            return;
        }
        waiting.unanswered = waiting.unanswered.saturating_sub(1);
        let at = waiting.ask_again.map_or(at, |known| at.min(known));
        waiting.ask_again = Some(at);
        if waiting.unanswered == 0 {
            self.schedule(key, at);
        }
    }

    /// Ask about everybody who waits for these locks now.
    pub(crate) fn ask_all(&mut self, now: Moment, concerns: impl Fn(&LockKey) -> bool) {
        let keys: Vec<_> = self.by_key.keys().cloned().collect();
        for key in keys.into_iter().filter(concerns) {
            self.schedule(&key, now);
        }
    }

    pub(crate) fn next_ask(&self) -> Option<Moment> {
        self.agenda.next()
    }

    fn schedule(&mut self, key: &LockKey, at: Moment) {
        if let Some(waiting) = self.by_key.get_mut(key) {
            if let Some(known) = waiting.ask_at.replace(at) {
                self.agenda.remove(known, key.clone());
            }
            self.agenda.insert(at, key.clone());
        }
    }
}
