//! What several servers have found, as one: what a majority says of holders, and the most
//! that any of them says of the rest.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::backend::token::Token;
use crate::types::finding::Finding;
use crate::types::health::Health;
use crate::types::holder::{Holder, Status};
use crate::types::key::LockKey;
use crate::types::overview::{Count, Overview, Summary};
use crate::types::query::Found;

/// How many servers there are, and how many decide.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sight {
    servers: usize,
    majority: usize,
}

impl Sight {
    pub(super) fn new(servers: usize, majority: usize) -> Self {
        Self { servers, majority }
    }

    /// How many of those that have answered have to name a holder: the others may know it
    /// too.
    fn needed(self, answered: usize) -> usize {
        let silent = self.servers - answered;
        self.majority.saturating_sub(silent).max(1)
    }
}

/// The answers to one query, one or more, as one.
pub(super) fn merge(found: Vec<Found>, sight: Sight) -> Found {
    let (mut statuses, mut names, mut overviews) = (Vec::new(), BTreeSet::new(), Vec::new());
    let (mut most, mut healths, mut findings) = (0, Vec::new(), Vec::new());
    let asked = found.first().map(std::mem::discriminant);
    let kind = |it: Found| asked == Some(std::mem::discriminant(&it));
    for answer in found {
        match answer {
            Found::Status(status) => statuses.push(status),
            Found::List(keys) => names.extend(keys),
            Found::Overview(overview) => overviews.push(overview),
            Found::ForceRelease(count) => most = count.max(most),
            Found::Health(health) => healths.push(health),
            Found::Diagnose(found) => findings.extend(found),
        }
    }
    if let Some(status) = status(&statuses, sight) {
        Found::Status(status)
    } else if let Some(overview) = overview(&overviews, sight) {
        Found::Overview(overview)
    } else if let Some(health) = health(healths, sight) {
        Found::Health(health)
    } else if !findings.is_empty() {
        Found::Diagnose(worst(findings))
    } else if kind(Found::ForceRelease(0)) {
        Found::ForceRelease(most)
    } else {
        Found::List(names.into_iter().collect())
    }
}

/// The longest queue that a majority has; who holds the lock is in no queue, though it may
/// wait on the other servers.
fn status(all: &[Status], sight: Sight) -> Option<Status> {
    let seen: Vec<_> = all.iter().map(|it| &it.holders[..]).collect();
    let holders = holders(&seen, sight);
    let holds = |id: &str| {
        let family = Token::family(id);
        holders.iter().any(|it| Token::family(&it.id) == family)
    };
    let without_holders = all.iter().cloned().map(|mut status| {
        let before = status.waiters.len();
        status.waiters.retain(|waiter| !holds(&waiter.id));
        status.waiting -= before - status.waiters.len();
        status
    });
    let mut lines: Vec<_> = without_holders.collect();
    lines.sort_by_key(|it| std::cmp::Reverse(it.waiting));
    let last = lines.len().checked_sub(1)?;
    let line = lines.swap_remove(last.min(sight.majority - 1));
    Some(Status { holders, ..line })
}

fn overview(all: &[Overview], sight: Sight) -> Option<Overview> {
    // What was granted by too few for a majority counts too.
    let counts = || all.iter().filter_map(Overview::count);
    let count = counts().max_by_key(|it| it.fence).map(|it| Count {
        fence: it.fence,
        raised_to: counts().map(|it| it.raised_to).min().unwrap_or(0),
    });
    let answered = all.len();
    let mut locks: BTreeMap<LockKey, Vec<Summary>> = BTreeMap::new();
    for summary in all.iter().flat_map(|it| &it.locks) {
        let same = locks.entry(summary.key.clone()).or_default();
        same.push(summary.clone());
    }
    let merged = locks.into_values();
    let merged = merged.filter_map(|it| summary(&it, answered, sight));
    (answered > 0).then(|| Overview::new(merged.collect(), count))
}

fn summary(same: &[Summary], answered: usize, sight: Sight) -> Option<Summary> {
    // A server that does not name the lock says that nobody has it there.
    let mut seen: Vec<_> = same.iter().map(|it| &it.holders[..]).collect();
    seen.resize(answered, &[]);
    let holders = holders(&seen, sight);
    let fullest = same.iter().max_by_key(|it| it.waiting)?;
    let crowded = same.iter().map(|it| it.held_by - it.holders.len()).max()?;
    let summary = Summary {
        kind: same
            .iter()
            .find_map(|it| it.kind)
            .filter(|_| holders.iter().any(|it| !it.resting)),
        held_by: holders.len() + crowded,
        holders,
        ..fullest.clone()
    };
    (summary.held_by > 0 || summary.waiting > 0).then_some(summary)
}

/// Reached when a majority is, as fast as that, and grants when a majority does.
fn health(mut all: Vec<Health>, sight: Sight) -> Option<Health> {
    let last_error = all.iter().find_map(|it| it.last_error.clone());
    all.sort_by_key(|it| (!it.connected, it.quarantined_until));
    let grants = all.get(sight.majority - 1)?.quarantined_until;
    all.sort_by_key(|it| (!it.connected, it.round_trip));
    let decides = all.into_iter().nth(sight.majority - 1)?;
    Some(Health {
        last_error,
        quarantined_until: grants,
        ..decides
    })
}

/// The worst that was found of each thing that was looked at.
fn worst(all: Vec<Finding>) -> Vec<Finding> {
    let mut worst: Vec<Finding> = Vec::new();
    for finding in all {
        match worst.iter_mut().find(|it| it.check == finding.check) {
            Some(known) if known.severity < finding.severity => *known = finding,
            Some(_) => {}
            None => worst.push(finding),
        }
    }
    worst
}

/// Those whom enough servers name, with what is known of them together.
fn holders(seen: &[&[Holder]], sight: Sight) -> Vec<Holder> {
    let mut groups: Vec<Vec<&Holder>> = Vec::new();
    for holder in seen.iter().copied().flatten() {
        let same = |it: &&mut Vec<&Holder>| {
            Token::family(&it[0].id) == Token::family(&holder.id) && it[0].resting == holder.resting
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push(holder),
            None => groups.push(vec![holder]),
        }
    }
    let needed = sight.needed(seen.len());
    groups.retain(|group| group.len() >= needed);
    groups.iter().map(|group| together(group, sight)).collect()
}

fn together(group: &[&Holder], sight: Sight) -> Holder {
    // It lasts as long as a majority has it.
    let mut left: Vec<_> = group.iter().map(|it| it.remaining).collect();
    left.sort_by_key(|it| std::cmp::Reverse(it.unwrap_or(Duration::MAX)));
    let remaining = left[sight.majority.min(left.len()) - 1];
    Holder {
        remaining,
        since: group.iter().filter_map(|it| it.since).max(),
        fencing_token: group.iter().find_map(|it| it.fencing_token),
        servers: Some(group.len()),
        ..group[0].clone()
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn nothing_is_granted_until_a_majority_grants() {
        let now = SystemTime::now();
        let until = |seconds: &[u64]| {
            let server = |(number, seconds): (u64, &u64)| Health {
                quarantined_until: (*seconds > 0).then(|| now + Duration::from_secs(*seconds)),
                ..Health::reached(Duration::from_millis(number))
            };
            let all = (0..).zip(seconds).map(server).collect();
            health(all, Sight::new(5, 3)).and_then(|it| it.quarantined_until)
        };
        assert_eq!(until(&[9, 9, 0, 0, 0]), None, "three grant");
        let third = now + Duration::from_secs(4);
        assert_eq!(until(&[0, 0, 9, 4, 5]), Some(third));
    }
}
