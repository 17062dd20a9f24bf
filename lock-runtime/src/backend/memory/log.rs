//! The last grants of locks, as far as managers want them to be remembered.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::base::clock::Moment;
use crate::types::fence::FencingToken;
use crate::types::history::{self, Grant, GrantEnd, REMEMBERED};
use crate::types::holder::Holder;
use crate::types::key::LockKey;
use crate::types::terms::Terms;

/// How many locks have a log before the first search for those to forget.
const FEW: usize = 1_000;

#[derive(Default)]
pub(super) struct Logs {
    /// Of each lock the oldest entry first.
    by_key: HashMap<LockKey, VecDeque<Entry>>,
    /// How many there were after the last search for those to forget.
    kept: usize,
    /// A moment, and what the wall clock showed then: moments of a clock that tests move are as far
    /// apart as they say.
    first: Option<(Moment, SystemTime)>,
}

struct Entry {
    terms: Arc<Terms>,
    fence: u64,
    since: Moment,
    end: Option<(Moment, GrantEnd)>,
}

impl Logs {
    /// Remembers a grant, and so many of its lock in all.
    pub(super) fn granted(&mut self, now: Moment, terms: &Arc<Terms>, fence: u64, keep: usize) {
        if keep == 0 {
            return;
        }
        self.forget(now);
        self.first.get_or_insert_with(|| (now, SystemTime::now()));
        let log = self.by_key.entry(terms.key.clone()).or_default();
        log.push_back(Entry {
            terms: Arc::clone(terms),
            fence,
            since: now,
            end: None,
        });
        log.drain(..log.len().saturating_sub(keep));
    }

    /// The grant with this fencing token has ended: numbers of acquisitions are those of their managers.
    pub(super) fn ended(&mut self, now: Moment, key: &LockKey, fence: u64, end: GrantEnd) {
        let log = self.by_key.get_mut(key).into_iter().flatten();
        for entry in log.filter(|it| it.fence == fence) {
            entry.end = Some((now, end));
        }
    }

    /// The grants of a lock that these hold, the newest first.
    pub(super) fn history(&self, key: &LockKey, holders: &[u64]) -> Vec<Grant> {
        let (Some(log), Some(first)) = (self.by_key.get(key), self.first) else {
            return Vec::new();
        };
        let mut grants: Vec<_> = log.iter().map(|it| it.describe(first)).collect();
        history::note_expired(&mut grants, |it| holders.contains(&it.fencing_token.get()));
        grants.reverse();
        grants
    }

    /// Forgets the locks that nobody has taken for long. A search looks at every lock, so the next one
    /// waits until there are twice as many.
    fn forget(&mut self, now: Moment) {
        if self.by_key.len() < FEW.max(2 * self.kept) {
            return;
        }
        let is_recent = |it: &Entry| now.since(it.since) < REMEMBERED;
        self.by_key
            .retain(|_, log| log.back().is_some_and(is_recent));
        self.kept = self.by_key.len();
    }
}

impl Entry {
    fn describe(&self, (first, clock): (Moment, SystemTime)) -> Grant {
        let at = |moment: Moment| clock + moment.since(first);
        let holder = Holder::here(&self.terms, Duration::ZERO);
        let fence = FencingToken::new(self.fence);
        Grant {
            until: self.end.map(|(until, _)| at(until)),
            end: self.end.map(|(_, end)| end),
            ..Grant::new(holder, self.terms.kind, fence, at(self.since))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::Clock;
    use crate::types::terms::LeaseId;

    #[test]
    fn locks_that_nobody_takes_are_forgotten() {
        let (clock, mut logs) = (Clock::manual(), Logs::default());
        let mut grant = |number: u64| {
            let key = number.to_string();
            let terms = Terms::of(LeaseId(number), &key, Duration::from_secs(1));
            logs.granted(clock.now(), &Arc::new(terms), number, 1);
            logs.by_key.len()
        };
        let few = FEW as u64;
        for number in 0..few {
            grant(number);
        }
        clock.advance(REMEMBERED);
        assert_eq!(grant(few), 1, "all others");
        for number in few..3 * few {
            grant(number);
        }
        assert_eq!(grant(3 * few), 2 * FEW + 1, "none is old");
    }
}
