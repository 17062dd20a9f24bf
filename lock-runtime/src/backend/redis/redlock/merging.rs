//! The answers of several servers, as one: the holders that a majority names, and of all else the
//! most that any server reports.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::backend::token::Token;
use crate::types::finding::Finding;
use crate::types::health::Health;
use crate::types::holder::{Holder, Status};
use crate::types::key::LockKey;
use crate::types::overview::{Count, Overview, Summary};

/// How many servers there are, and how many decide.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sight {
    pub(super) servers: usize,
    pub(super) majority: usize,
}

impl Sight {
    /// How many of those that have answered have to name a holder: the others may know it
    /// too.
    fn needed(self, answered: usize) -> usize {
        let silent = self.servers - answered;
        self.majority.saturating_sub(silent).max(1)
    }
}

pub(super) fn names(all: Vec<Vec<LockKey>>) -> Vec<LockKey> {
    let names: BTreeSet<_> = all.into_iter().flatten().collect();
    names.into_iter().collect()
}

/// The longest queue that a majority has, without the holders: a holder may still wait on the
/// other servers.
pub(super) fn status(all: Vec<Status>, sight: Sight) -> Option<Status> {
    let seen: Vec<_> = all.iter().map(|it| &it.holders[..]).collect();
    let holders = holders(&seen, sight);
    // As the server says that names the first of them.
    let names = |it: &Status, id: &str| {
        let family = Token::family(id);
        it.holders.iter().any(|it| Token::family(&it.id) == family)
    };
    let first = holders.first();
    let kind = first.and_then(|first| all.iter().find(|it| names(it, &first.id))?.kind);
    let families: BTreeSet<_> = holders.iter().map(|it| Token::family(&it.id)).collect();
    let holds = |id: &str| families.contains(&Token::family(id));
    let without_holders = all.into_iter().map(|mut status| {
        let before = status.waiters.len();
        status.waiters.retain(|waiter| !holds(&waiter.id));
        // A server may count fewer than it names.
        let gone = before - status.waiters.len();
        status.waiting = status.waiting.saturating_sub(gone);
        status
    });
    let mut queues: Vec<_> = without_holders.collect();
    queues.sort_by_key(|it| std::cmp::Reverse(it.waiting));
    let last = queues.len().checked_sub(1)?;
    let queue = queues.swap_remove(last.min(sight.majority - 1));
    Some(Status {
        kind,
        holders,
        ..queue
    })
}

pub(super) fn overview(all: Vec<Overview>, sight: Sight) -> Option<Overview> {
    // Grants by too few servers for a majority count too.
    let counts = || all.iter().filter_map(Overview::count);
    let count = counts().max_by_key(|it| it.fence).map(|it| Count {
        fence: it.fence,
        raised_to: counts().map(|it| it.raised_to).min().unwrap_or(0),
    });
    let answered = all.len();
    let mut locks: BTreeMap<LockKey, Vec<Summary>> = BTreeMap::new();
    for summary in all.into_iter().flat_map(|it| it.locks) {
        let same = locks.entry(summary.key.clone()).or_default();
        same.push(summary);
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
    let unnamed = |it: &Summary| it.held_by.saturating_sub(it.holders.len());
    let crowded = same.iter().map(unnamed).max()?;
    let summary = Summary {
        kind: same
            .iter()
            .find_map(|it| it.kind)
            .filter(|_| holders.iter().any(|it| !it.cooling_down)),
        held_by: holders.len().saturating_add(crowded),
        holders,
        ..fullest.clone()
    };
    (summary.held_by > 0 || summary.waiting > 0).then_some(summary)
}

/// Reached when a majority is, as fast as that, and grants when a majority does.
pub(super) fn health(mut all: Vec<Health>, sight: Sight) -> Option<Health> {
    let last_error = all.iter().find_map(|it| it.last_error.clone());
    let reachable = all.iter().filter(|it| it.connected).count();
    let granting = all.iter().filter(|it| it.grants).count();
    all.sort_by_key(|it| (!it.connected, it.quarantined_until));
    let grants = all.get(sight.majority - 1)?.quarantined_until;
    all.sort_by_key(|it| (!it.connected, it.round_trip));
    let decides = all.into_iter().nth(sight.majority - 1)?;
    Some(Health {
        grants: granting >= sight.majority,
        reachable,
        servers: sight.servers,
        last_error,
        quarantined_until: grants,
        ..decides
    })
}

/// The worst that was found of each thing that was looked at.
pub(super) fn worst(all: Vec<Vec<Finding>>) -> Vec<Finding> {
    let mut worst: Vec<Finding> = Vec::new();
    for finding in all.into_iter().flatten() {
        match worst.iter_mut().find(|it| it.check == finding.check) {
            Some(known) if known.severity < finding.severity => *known = finding,
            Some(_) => {}
            None => worst.push(finding),
        }
    }
    worst
}

/// The holders that enough servers name, with their merged facts.
fn holders(seen: &[&[Holder]], sight: Sight) -> Vec<Holder> {
    let mut groups: Vec<Vec<&Holder>> = Vec::new();
    let mut numbers = BTreeMap::new();
    for holder in seen.iter().copied().flatten() {
        let is = (Token::family(&holder.id), holder.cooling_down);
        let number = *numbers.entry(is).or_insert(groups.len());
        match groups.get_mut(number) {
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
        // Nobody leads without a majority.
        data: group[0]
            .data
            .clone()
            .filter(|_| group.len() >= sight.majority),
        since: group.iter().filter_map(|it| it.since).max(),
        fencing_token: group.iter().find_map(|it| it.fencing_token),
        // Its answer to one server is enough.
        answers: group.iter().filter_map(|it| it.answers).max(),
        servers: Some(group.len()),
        ..group[0].clone()
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;
    use crate::types::fence::FencingToken;
    use crate::types::leader::Leader;

    #[test]
    fn nothing_is_granted_until_a_majority_grants() {
        let (now, sight) = (
            SystemTime::now(),
            Sight {
                servers: 5,
                majority: 3,
            },
        );
        let until = |seconds: &[u64]| {
            let server = |(number, seconds): (u64, &u64)| Health {
                grants: *seconds == 0,
                quarantined_until: (*seconds > 0).then(|| now + Duration::from_secs(*seconds)),
                ..Health::reached(Duration::from_millis(number))
            };
            let all = (0..).zip(seconds).map(server).collect();
            let health = health(all, sight).expect("a majority has answered");
            assert_eq!((health.reachable, health.servers), (seconds.len(), 5));
            (health.grants, health.quarantined_until)
        };
        assert_eq!(until(&[9, 9, 0, 0, 0]), (true, None), "three grant");
        assert_eq!(until(&[0, 0, 0]), (true, None), "three are all that answer");
        let third = now + Duration::from_secs(4);
        assert_eq!(until(&[0, 0, 9, 4, 5]), (false, Some(third)));
    }

    // Section: guarantees.md#elections
    #[test]
    fn nobody_leads_who_is_named_by_a_minority() {
        let sight = Sight {
            servers: 5,
            majority: 3,
        };
        // The first of them does not know its fence.
        let led = |named: usize, answered: usize| {
            let all = (0..answered).map(|server| {
                let mut status = Status::free(LockKey::of("k"));
                if server < named {
                    status.holders.push(Holder {
                        fencing_token: (server > 0).then(|| FencingToken::new(9)),
                        data: Some("it".into()),
                        ..Holder::unknown("7".repeat(32), None)
                    });
                }
                status
            });
            let status = status(all.collect(), sight).expect("a majority has answered");
            assert_eq!(status.holders.len(), 1, "it may be held");
            Leader::among(status).map(|it| it.fencing_token.get())
        };
        assert_eq!((led(1, 3), led(2, 4), led(2, 3)), (None, None, None));
        assert_eq!(
            (led(3, 3), led(3, 5), led(5, 5)),
            (Some(9), Some(9), Some(9))
        );
    }
}
