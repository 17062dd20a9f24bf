//! What an ensemble of ZooKeeper did to the nodes of exclusive locks, and the bodies that began.

use std::collections::HashMap;

use spec::revisions::Event;

use super::{
    Verdict,
    entries::{Locks, owner},
};
use crate::{ZooKeeperHistory, zookeeper::Change};

/// The beginning of the paths of all locks, and of nothing else.
const PREFIX: &str = "/lock/";

/// What the model says of what became of the nodes, and of the bodies that began: each with its lock, its fence and its
/// process. Locks that were also shared are left out, and what followed a transaction that is in no log.
///
/// The nodes of a lock with the same number are one entry: that of a cooldown or ticket takes the place of the holder's in
/// one transaction, and that of an adopter the place of the ticket's.
pub fn zookeeper_verdict(
    history: ZooKeeperHistory,
    begun: impl IntoIterator<Item = (String, u64, u32)>,
) -> Verdict {
    let begun: Vec<_> = begun.into_iter().collect();
    let seen = begun.iter().map(|(_, fence, _)| *fence);
    let mut locks = Locks::until(history.missing(seen));
    // For each entry, the transaction that made it, and its present node.
    let mut entries: HashMap<String, (u64, String)> = HashMap::new();
    for Change { at, node, created } in history.changes {
        let Some((lock, name)) = node
            .split_once(PREFIX)
            .and_then(|(_, it)| it.split_once('/'))
        else {
            continue;
        };
        let mut parts = name.split('-');
        let (Some(kind), Some(_), Some(number)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        if kind != "x" {
            locks.leave_out(lock);
        }
        let key = format!("{lock}/{number}");
        let event = match created {
            Some(data) => {
                let (made, present) = entries.entry(key.clone()).or_insert((at, String::new()));
                node.clone_into(present);
                Event::Written {
                    key,
                    made: *made,
                    owner: owner(data.split_ascii_whitespace()),
                }
            }
            // Another node has its place.
            None if entries
                .get(&key)
                .is_some_and(|(_, present)| *present != node) =>
            {
                continue;
            }
            None => {
                entries.remove(&key);
                Event::Deleted(key)
            }
        };
        locks.changed(lock, at, event);
    }
    locks.verdict(begun)
}
