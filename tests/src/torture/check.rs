//! Reads the history of a run and says what in it must not be.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use super::history::{Event, Kind};

/// What a run has shown.
#[derive(Debug, Default)]
pub struct Report {
    /// How many bodies were entered.
    pub grants: usize,
    /// How many callers were told of a loss.
    pub losses: usize,
    /// How many writes of overtaken holders the register refused.
    pub stale: usize,
    /// The longest time that a key stood still after the end of a fault.
    pub recovery: Duration,
    /// What must not be.
    pub violations: Vec<String>,
}

/// Checks the events of a run, in the order of their times, and the ends of its faults.
pub(super) fn check(events: &[Event], healed: &[Duration], exclusive: bool) -> Report {
    let count = |kind| events.iter().filter(|event| event.kind == kind).count();
    let mut report = Report {
        grants: count(Kind::Enter),
        losses: count(Kind::Lost),
        stale: count(Kind::Stale),
        ..Report::default()
    };
    let mut keys: BTreeMap<&str, Vec<&Event>> = BTreeMap::new();
    for event in events {
        keys.entry(&event.key).or_default().push(event);
    }
    for (key, events) in keys {
        report.check_order(key, &events, exclusive);
        report.measure_recovery(&events, healed);
    }
    report
}

impl Report {
    /// Fences grow from body to body, no body is polled after its deadline, and where nobody meddles none after
    /// the next one was entered.
    fn check_order(&mut self, key: &str, events: &[&Event], exclusive: bool) {
        let mut highest = 0;
        for event in events {
            let Event { at, fence, .. } = event;
            match event.kind {
                Kind::Enter if *fence <= highest => {
                    let what = format!("{key}: fence {fence} entered after {highest} at {at:?}");
                    self.violations.push(what);
                }
                Kind::Enter => highest = *fence,
                Kind::Poll if exclusive && *fence < highest => {
                    let what = format!("{key}: {fence} was polled beside {highest} at {at:?}");
                    self.violations.push(what);
                }
                Kind::Late => {
                    let what = format!("{key}: {fence} was polled after its deadline at {at:?}");
                    self.violations.push(what);
                }
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
                asked.insert(event.fence, event.at);
            } else {
                alive.push(*event);
            }
        }
        for healed in healed {
            let enters = |event: &&Event| event.kind == Kind::Enter && event.at > *healed;
            // The last faults may have no body after them, as the run ends.
            let Some(next) = alive.iter().position(enters) else {
                continue;
            };
            let before = next.checked_sub(1).map(|last| alive[last].at);
            let wanted = asked.get(&alive[next].fence).copied();
            let from = [before, wanted, Some(*healed)].into_iter().flatten().max();
            let still = alive[next].at.saturating_sub(from.unwrap_or_default());
            self.recovery = self.recovery.max(still);
        }
    }

    /// The register's writes are in the order in which their bodies were entered.
    pub(super) fn check_writes(&mut self, key: &str, writes: &[u64], events: &[Event]) {
        let entered: HashMap<u64, Duration> = events
            .iter()
            .filter(|event| event.kind == Kind::Enter && event.key == key)
            .map(|event| (event.fence, event.at))
            .collect();
        for pair in writes.windows(2) {
            if entered.get(&pair[1]) < entered.get(&pair[0]) {
                let what = format!(
                    "{key}: the write of {} was taken after {}'s",
                    pair[1], pair[0]
                );
                self.violations.push(what);
            }
        }
    }
}
