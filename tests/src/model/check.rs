//! Reads the history of a run and says what in it no lock would do.
//!
//! A body is known to hold its keys from its first turn to its last one; where the server has confirmed the release,
//! from the grant to the call of the release.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use super::{
    event::{Event, What},
    plan::Kind,
    report::Report,
    store::Counted,
};

/// A turn that began just before its deadline may be noted just after.
const BLINK: Duration = Duration::from_millis(5);

/// What is known of one operation.
#[derive(Debug)]
struct Record<'a> {
    number: usize,
    process: &'a str,
    kind: Kind,
    keys: BTreeSet<&'a str>,
    begun: Duration,
    fence: Option<u64>,
    granted: Duration,
    /// Until when it was known to hold its keys, at its last turn.
    until: Duration,
    steps: Option<(Duration, Duration)>,
    released: Option<Duration>,
    confirmed: bool,
    ended: bool,
}

/// A time for which a key was held for certain.
#[derive(Debug)]
struct Hold {
    from: Duration,
    to: Duration,
    kind: Kind,
    fence: u64,
    number: usize,
}

/// A lock that was revoked: its holder may work on until it is notified.
#[derive(Debug)]
struct Revoked<'a> {
    key: &'a str,
    from: Duration,
    until: Duration,
    fence: u64,
}

/// Checks the events of a run, in the order of their times.
pub(super) fn check(events: &[Event], counted: Counted) -> Report {
    let mut report = Report::default();
    let mut records: BTreeMap<usize, Record<'_>> = BTreeMap::new();
    let mut killed = BTreeSet::new();
    let mut revoked = Vec::new();
    for event in events {
        let complaint = match (&event.what, records.get_mut(&event.operation)) {
            (What::Kill, _) => {
                killed.insert(&*event.process);
                report.kills += 1;
                None
            }
            (What::Stop, _) => {
                report.stops += 1;
                None
            }
            (What::Cut, _) => {
                report.cuts += 1;
                None
            }
            (What::Revoked(key, from, fence), _) => {
                revoked.push(Revoked::new(key, *from, event.at, *fence));
                None
            }
            (What::Begin(kind, keys), None) => {
                let record = Record::new(event, *kind, keys);
                records.insert(event.operation, record);
                None
            }
            (What::Begin(..), Some(_)) => Some("began twice"),
            (_, None) => Some("did something before it began"),
            (what, Some(record)) => record.take(event.at, what, &mut report),
        };
        if let Some(complaint) = complaint {
            report.complain(event.at, event.operation, complaint);
        }
    }
    report.operations = records.len();
    report.revoked = revoked.len();
    let last = events.last().map(|event| event.at).unwrap_or_default();
    let mut fences = BTreeMap::new();
    let mut keys: BTreeMap<&str, Vec<Hold>> = BTreeMap::new();
    for record in records.values() {
        if !record.ended && !killed.contains(record.process) {
            report.complain(last, record.number, "never ended");
        }
        let Some(fence) = record.fence else { continue };
        // The fence of several keys is that of the last one.
        let key = record
            .keys
            .last()
            .filter(|_| counted == Counted::ForEachLock);
        if let Some(other) = fences.insert((key, fence), record.number) {
            let twice = format!("has the fence {fence} of operation {other}");
            report.complain(record.granted, record.number, twice);
        }
        report.count(record.kind, record.keys.len());
        for key in &record.keys {
            let hold = record.hold(fence);
            let hold = hold.and_then(|it| record.until_revoked(key, it, &revoked));
            keys.entry(key).or_default().extend(hold);
        }
    }
    for (key, mut holds) in keys {
        holds.sort_by_key(|hold| hold.from);
        check_holders(key, &holds, &mut report);
        check_fences(key, &holds, &mut report);
    }
    let begun = events
        .iter()
        .filter(|it| matches!(it.what, What::Begin(..)));
    let begun: Vec<_> = begun.map(|event| event.at).collect();
    report.settle(&begun);
    report
}

impl<'a> Record<'a> {
    fn new(event: &'a Event, kind: Kind, keys: &'a [String]) -> Self {
        Self {
            number: event.operation,
            process: &event.process,
            kind,
            keys: keys.iter().map(String::as_str).collect(),
            begun: event.at,
            fence: None,
            granted: Duration::ZERO,
            until: Duration::ZERO,
            steps: None,
            released: None,
            confirmed: false,
            ended: false,
        }
    }

    /// Takes in what the operation did; what of it must not be.
    fn take(&mut self, at: Duration, what: &What, report: &mut Report) -> Option<&'static str> {
        let granted = self.fence.is_some();
        match what {
            What::Begin(..) | What::Stop | What::Kill | What::Cut | What::Revoked(..) => {}
            What::Released(ours) => self.confirmed = *ours,
            What::Release => self.released = Some(at),
            _ if self.ended => return Some("went on after its end"),
            What::Granted(..) if granted => return Some("was granted twice"),
            What::Granted(fence, until, keys) => {
                (self.fence, self.granted, self.until) = (Some(*fence), at, *until);
                if !keys
                    .iter()
                    .map(String::as_str)
                    .eq(self.keys.iter().rev().copied())
                {
                    return Some("was not granted the keys that it asked for");
                }
            }
            What::Step(_) if !granted => return Some("had a body without a grant"),
            What::Step(until) => {
                let last = self.until.max(*until);
                self.until = last;
                let (first, _) = self.steps.unwrap_or((at, at));
                self.steps = Some((first, at));
                if at > last + BLINK {
                    return Some("had a turn after its deadline");
                }
            }
            What::Done | What::Lost => {
                self.ended = true;
                report.losses += usize::from(*what == What::Lost);
                if !granted {
                    return Some("ended a body without a grant");
                }
            }
            What::Cancelled => {
                self.ended = true;
                report.cancelled += 1;
            }
            What::Failed(error) => {
                self.ended = true;
                *report.errors.entry(error.clone()).or_default() += 1;
                if granted {
                    return Some("had a body, and failed");
                }
                if !["contended", "unavailable"].contains(&error.as_str()) {
                    return Some("failed in a way that it must not");
                }
            }
        }
        None
    }

    fn hold(&self, fence: u64) -> Option<Hold> {
        let confirmed = self.released.filter(|_| self.confirmed);
        let (from, to) = match confirmed {
            Some(released) => (self.granted, released),
            None => self.steps?,
        };
        let (kind, number) = (self.kind, self.number);
        Some(Hold {
            from,
            to,
            kind,
            fence,
            number,
        })
    }

    /// The part of it before the lock was revoked.
    fn until_revoked(&self, key: &str, mut hold: Hold, revoked: &[Revoked<'_>]) -> Option<Hold> {
        for revoked in revoked.iter().filter(|revoked| revoked.key == key) {
            // The fence of several keys is that of the last one, and says nothing of the others.
            let several = self.keys.len() > 1 && self.begun < revoked.until;
            if hold.fence <= revoked.fence || several {
                hold.to = hold.to.min(revoked.from);
            }
        }
        (hold.from <= hold.to).then_some(hold)
    }
}

impl<'a> Revoked<'a> {
    fn new(key: &'a str, from: Duration, until: Duration, fence: u64) -> Self {
        Self {
            key,
            from,
            until,
            fence,
        }
    }
}

/// One exclusive holder; or readers; or so many permits.
fn check_holders(key: &str, holds: &[Hold], report: &mut Report) {
    let mut beside: Vec<&Hold> = Vec::new();
    for hold in holds {
        beside.retain(|other| other.to >= hold.from);
        let stranger = beside.iter().find(|other| {
            let alike = other.kind == hold.kind;
            !alike || hold.kind == Kind::Exclusive
        });
        if let Some(other) = stranger {
            let Hold { number, kind, .. } = other;
            let what = format!(
                "holds {key} ({}) beside operation {number} ({kind})",
                hold.kind
            );
            report.complain(hold.from, hold.number, what);
        } else if let Kind::Permits(most) = hold.kind
            && beside.len() >= usize::try_from(most).unwrap_or(usize::MAX)
        {
            let others: Vec<_> = beside.iter().map(|other| other.number).collect();
            let what = format!("holds one of {most} permits of {key} beside operations {others:?}");
            report.complain(hold.from, hold.number, what);
        } else if !beside.is_empty() {
            report.together += 1;
        }
        beside.push(hold);
    }
}

/// Who excludes those before has a larger fence than they.
fn check_fences(key: &str, holds: &[Hold], report: &mut Report) {
    let mut highest: BTreeMap<Kind, u64> = BTreeMap::new();
    for hold in holds {
        let before = highest
            .iter()
            .filter(|(kind, _)| **kind != hold.kind || hold.kind == Kind::Exclusive);
        let before = before.map(|(_, fence)| *fence).max().unwrap_or(0);
        if hold.fence <= before {
            let fence = hold.fence;
            let what = format!("holds {key} with the fence {fence} after {before}");
            report.complain(hold.from, hold.number, what);
        }
        let highest = highest.entry(hold.kind).or_default();
        *highest = hold.fence.max(*highest);
    }
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
