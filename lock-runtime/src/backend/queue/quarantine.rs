//! A server that may have forgotten locks: until the last of them has ended nothing is
//! granted. What is held is renewed, and ends without being handed over.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::protocol::trouble::Trouble;
use crate::base::clock::Moment;
use crate::types::key::LockKey;

/// Which locks are not granted, and until when.
#[derive(Debug, Default)]
pub(super) struct Quarantines(Vec<Quarantine>);

/// Until when nothing is granted.
#[derive(Debug)]
pub(super) struct Quarantine {
    pub(super) ends: Moment,
    /// The same by the clock of this machine.
    pub(super) until: SystemTime,
    pub(super) trouble: Trouble,
    /// The locks that it is about, unless it is about all.
    part: Option<Part>,
}

/// A part of the locks, which one of several servers has.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) slots: BTreeSet<u16>,
    /// The slot of a lock.
    pub(crate) slot_of: fn(&LockKey) -> u16,
}

impl Part {
    fn has(&self, key: &LockKey) -> bool {
        self.slots.contains(&(self.slot_of)(key))
    }
}

impl Quarantine {
    fn new(now: Moment, ends: Moment, part: Option<Part>) -> Self {
        let until = SystemTime::now() + ends.since(now);
        Self {
            ends,
            until,
            trouble: Trouble::NotNow(Arc::new(Quarantined { until })),
            part,
        }
    }

    fn concerns(&self, key: &LockKey) -> bool {
        self.part.as_ref().is_none_or(|part| part.has(key))
    }
}

impl Quarantines {
    /// That of the only server, if it is in one.
    pub(super) fn of_server(now: Moment, left: Option<Duration>) -> Self {
        let all = left.map(|left| Quarantine::new(now, now.after(left), None));
        Self(all.into_iter().collect())
    }

    /// Adds a part of the locks; `false` if all of it was known.
    pub(super) fn close(&mut self, now: Moment, part: Part, ends: Moment) -> bool {
        let known = self.0.iter_mut().find(|it| it.ends == ends);
        if let Some(known) = known.and_then(|it| it.part.as_mut()) {
            let before = known.slots.len();
            known.slots.extend(part.slots);
            return known.slots.len() > before;
        }
        self.0.push(Quarantine::new(now, ends, Some(part)));
        true
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The longest in which this lock is.
    pub(super) fn of(&self, key: &LockKey) -> Option<&Quarantine> {
        let all = self.0.iter().filter(|it| it.concerns(key));
        all.max_by_key(|it| it.ends)
    }

    pub(super) fn last(&self) -> Option<&Quarantine> {
        self.0.iter().max_by_key(|it| it.ends)
    }

    pub(super) fn next_end(&self) -> Option<Moment> {
        self.0.iter().map(|it| it.ends).min()
    }

    /// Whether one has ended; it is forgotten.
    pub(super) fn has_ended(&mut self, now: Moment) -> bool {
        let before = self.0.len();
        self.0.retain(|it| it.ends > now);
        self.0.len() < before
    }
}

/// The server may have forgotten locks.
#[derive(Debug)]
struct Quarantined {
    until: SystemTime,
}

impl fmt::Display for Quarantined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let until = self.until.duration_since(SystemTime::UNIX_EPOCH);
        let second = until.unwrap_or_default().as_secs() % (24 * 60 * 60);
        let (hours, minutes, seconds) = (second / 3600, second / 60 % 60, second % 60);
        let left = self.until.duration_since(SystemTime::now());
        write!(
            f,
            "no lock is granted until {hours:02}:{minutes:02}:{seconds:02} UTC, for another {:.1?}: the server has \
             started or taken over, and may have forgotten locks (`quarantine`)",
            left.unwrap_or_default()
        )
    }
}

impl std::error::Error for Quarantined {}
