//! What a cluster of etcd did to the entries of exclusive locks, revision by revision, and the bodies that began.

use std::collections::BTreeMap;

use spec::revisions::{Event, Owner, Revisions, Step};

use super::Verdict;
use crate::{EtcdServer, etcd::Change};

/// The beginning of the keys of all locks.
const PREFIX: &str = "lock/";

/// What the model says of all that was done to the locks whose names begin so, and of the bodies that began: each with its
/// lock, its fence and its process. Locks that were also shared are left out.
pub async fn verdict(
    server: &EtcdServer,
    names: &str,
    begun: impl IntoIterator<Item = (String, u64, u32)>,
) -> Verdict {
    let changes = server.changes(&format!("{PREFIX}{names}")).await;
    let mut locks: BTreeMap<String, Vec<Step>> = BTreeMap::new();
    for change in &changes {
        let (lock, _) = parts(&change.key);
        // Keys that belong to no lock have no name.
        if !lock.is_empty() {
            locks.entry(lock.to_owned()).or_default().push(step(change));
        }
    }
    for (lock, at, process) in begun {
        let event = Event::Began(process);
        locks.entry(lock).or_default().push(Step { at, event });
    }
    let mut verdict = Verdict::default();
    for (name, mut steps) in locks {
        if steps.iter().any(is_shared) {
            verdict.outside += steps.len();
            continue;
        }
        // A body begins behind what its revision has done.
        steps.sort_by_key(|it| it.at);
        let mut lock = Revisions::default();
        let refusal = steps.into_iter().find_map(|it| lock.step(it).err());
        verdict.accepted += lock.accepted();
        verdict
            .refused
            .extend(refusal.map(|it| format!("{name}: {it}")));
    }
    verdict
}

/// The lock and the entry of a key.
fn parts(key: &str) -> (&str, &str) {
    let rest = key.strip_prefix(PREFIX).unwrap_or(key);
    rest.split_once('/').expect("the key of an entry")
}

fn is_shared(step: &Step) -> bool {
    match &step.event {
        Event::Written { key, .. } | Event::Deleted(key) => !parts(key).1.starts_with("x-"),
        Event::Began(_) => false,
    }
}

fn step(change: &Change) -> Step {
    let key = change.key.clone();
    let event = match &change.written {
        Some((made, value)) => Event::Written {
            key,
            made: *made,
            owner: owner(value),
        },
        None => Event::Deleted(key),
    };
    let at = change.revision;
    Step { at, event }
}

/// Whose an entry is with this value, unless a cooldown or a ticket keeps the lock closed.
fn owner(value: &str) -> Option<Owner> {
    let mut words = value.split_ascii_whitespace().skip(2);
    let (token, process) = (words.next()?, words.next()?);
    let process = process.split('@').next()?.parse().ok()?;
    let token = token.to_owned();
    (!token.starts_with(['-', '='])).then_some(Owner { process, token })
}
