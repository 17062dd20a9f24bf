//! Reads the history of a run and says what in it must not be.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    ops::Range,
    time::Duration,
};

use super::{
    history::{Event, Grant, Kind},
    lock_name,
};

/// What a run has shown.
#[derive(Debug, Default)]
pub struct Report {
    /// How many bodies were entered.
    pub grants: usize,
    /// From the first event to the last.
    pub lasted: Duration,
    /// How many callers were told of a loss.
    pub losses: usize,
    /// How many writes of overtaken holders the register refused.
    pub stale: usize,
    /// How many bodies were polled after another one had been entered under the same lock.
    pub overlaps: usize,
    /// How many bodies were entered under a fence that was not above all earlier ones.
    pub fences: usize,
    /// The longest time that a key stood still after the end of a fault.
    pub recovery: Duration,
    /// What must not be.
    pub violations: Vec<String>,
}

/// What a run has to keep, beside that no body is polled after its deadline.
#[derive(Clone, Copy, Debug)]
pub(super) struct Promises {
    /// No body is polled after the next one was entered.
    pub(super) exclusive: bool,
    /// Fences grow from body to body.
    pub(super) fences: bool,
}

/// Checks the events of a run, in the order of their times, and the ends of its faults.
pub(super) fn check(events: &[Event], healed: &[Duration], promises: Promises) -> Report {
    let count = |kind| events.iter().filter(|event| event.kind == kind).count();
    let mut report = Report {
        grants: count(Kind::Enter),
        lasted: match events {
            [first, .., last] => last.at.saturating_sub(first.at),
            _ => Duration::ZERO,
        },
        losses: count(Kind::Lost),
        stale: count(Kind::Stale),
        ..Report::default()
    };
    let mut keys: BTreeMap<usize, Vec<&Event>> = BTreeMap::new();
    for event in events {
        keys.entry(event.grant.key).or_default().push(event);
    }
    for events in keys.values() {
        report.check_order(events, promises);
        report.measure_recovery(events, healed);
    }
    report
}

impl Report {
    fn check_order(&mut self, events: &[&Event], promises: Promises) {
        let mut highest = 0;
        let mut latest = None;
        let mut overlapping = HashSet::new();
        for Event { at, kind, grant } in events.iter().copied() {
            let Grant { fence, .. } = grant;
            let mut violation = |what: String| {
                let key = lock_name(grant.key);
                self.violations.push(format!("{key}: {what} at {at:?}"));
            };
            match kind {
                Kind::Enter => {
                    if *fence <= highest {
                        self.fences += 1;
                        if promises.fences {
                            violation(format!("fence {fence} entered after {highest}"));
                        }
                    }
                    highest = highest.max(*fence);
                    latest = Some(grant);
                }
                Kind::Poll if latest != Some(grant) && overlapping.insert(*grant) => {
                    self.overlaps += 1;
                    if promises.exclusive {
                        violation(format!("{fence} was polled beside {latest:?}"));
                    }
                }
                Kind::Late => violation(format!("{fence} was polled after its deadline")),
                _ => {}
            }
        }
    }

    /// A body that was running when the fault ended may run on, and a key that nobody asks for may rest: the time
    /// counts from the last sign of life and from the question.
    fn measure_recovery(&mut self, events: &[&Event], healed: &[Duration]) {
        let mut asked = HashMap::new();
        let mut alive = Vec::new();
        for event in events {
            if event.kind == Kind::Asked {
                asked.insert(event.grant, event.at);
            } else {
                alive.push(*event);
            }
        }
        for healed in healed {
            let after = alive.partition_point(|event| event.at <= *healed);
            let entered = alive[after..].iter().position(|it| it.kind == Kind::Enter);
            // The last faults may have no body after them, as the run ends.
            let Some(next) = entered.map(|further| after + further) else {
                continue;
            };
            let before = next.checked_sub(1).map(|last| alive[last].at);
            let wanted = asked.get(&alive[next].grant).copied();
            let from = [before, wanted, Some(*healed)].into_iter().flatten().max();
            let still = alive[next].at.saturating_sub(from.unwrap_or_default());
            self.recovery = self.recovery.max(still);
        }
    }

    /// Nobody gets in while no majority is up.
    pub(super) fn check_closed(&mut self, events: &[Event], closed: &[Range<Duration>]) {
        for Event { at, grant, .. } in events.iter().filter(|it| it.kind == Kind::Enter) {
            if closed.iter().any(|closed| closed.contains(at)) {
                let what = format!("{grant:?} was entered at {at:?} without a majority");
                self.violations.push(what);
            }
        }
    }

    /// The register's writes are in the order in which their bodies were entered.
    pub(super) fn check_writes(&mut self, key: usize, writes: &[u64], events: &[Event]) {
        let entered: HashMap<u64, Duration> = events
            .iter()
            .filter(|event| event.kind == Kind::Enter && event.grant.key == key)
            .map(|event| (event.grant.fence, event.at))
            .collect();
        for pair in writes.windows(2) {
            if entered.get(&pair[1]) < entered.get(&pair[0]) {
                let (key, [first, second]) = (lock_name(key), [pair[0], pair[1]]);
                let what = format!("{key}: the write of {second} was taken after {first}'s");
                self.violations.push(what);
            }
        }
    }
}
