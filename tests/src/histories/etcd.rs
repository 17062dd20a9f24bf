//! What a cluster of etcd did to the entries of exclusive locks, and the bodies that began.

use spec::revisions::Event;

use super::{
    Verdict,
    entries::{Locks, owner},
};
use crate::{EtcdServer, etcd::Change};

/// The beginning of the keys of all locks.
const PREFIX: &str = "lock/";

/// What the model says of all that was done to the locks whose names begin so, and of the bodies that began: each with its
/// lock, its fence and its process. Locks that were also shared are left out.
pub async fn etcd_verdict(
    server: &EtcdServer,
    names: &str,
    begun: impl IntoIterator<Item = (String, u64, u32)>,
) -> Verdict {
    let changes = server.changes(&format!("{PREFIX}{names}")).await;
    let mut locks = Locks::default();
    for change in changes {
        let key = change.key.strip_prefix(PREFIX).unwrap_or(&change.key);
        let (lock, entry) = key.split_once('/').expect("the key of an entry");
        // Keys that belong to no lock have no name.
        if lock.is_empty() {
            continue;
        }
        if !entry.starts_with("x-") {
            locks.leave_out(lock);
        }
        locks.changed(lock, change.revision, event(&change));
    }
    locks.verdict(begun)
}

fn event(change: &Change) -> Event {
    let key = change.key.clone();
    match &change.written {
        Some((made, value)) => Event::Written {
            key,
            made: *made,
            owner: owner(value.split_ascii_whitespace().skip(2)),
        },
        None => Event::Deleted(key),
    }
}
