//! Queries about all locks: each node answers for its slots, and the answers are put
//! together.

use std::collections::{BTreeMap, BTreeSet};

use crate::backend::Outcome;
use crate::types::error::Cause;
use crate::types::overview::Overview;
use crate::types::query::{Found, QueryId};

/// The answers that are being put together.
#[derive(Debug, Default)]
pub(super) struct Gathering {
    open: BTreeMap<QueryId, Gathered>,
    /// Which query each part is for.
    parts: BTreeMap<QueryId, QueryId>,
    /// Counted down, since the driver counts up.
    used: u64,
}

#[derive(Debug, Default)]
struct Gathered {
    missing: usize,
    found: Option<Found>,
    failed: Option<Cause>,
}

impl Gathering {
    /// The id of one more part of a query.
    pub(super) fn part(&mut self, whole: QueryId) -> QueryId {
        self.used += 1;
        let part = QueryId(u64::MAX - self.used);
        self.parts.insert(part, whole);
        self.open.entry(whole).or_default().missing += 1;
        part
    }

    /// Lets everything pass but parts, of which the last becomes the whole.
    pub(super) fn take_in(&mut self, outcome: Outcome) -> Option<Outcome> {
        let Outcome::Answered { id, result } = outcome else {
            return Some(outcome);
        };
        let Some(whole) = self.parts.remove(&id) else {
            return Some(Outcome::Answered { id, result });
        };
        let gathered = self.open.get_mut(&whole)?;
        gathered.missing -= 1;
        match (result, gathered.found.take()) {
            (Ok(more), None) => gathered.found = Some(more),
            (Ok(more), Some(found)) => gathered.found = Some(both(found, more)),
            (Err(cause), _) => gathered.failed = Some(cause),
        }
        if gathered.missing > 0 {
            return None;
        }
        let Gathered { found, failed, .. } = self.open.remove(&whole)?;
        Some(Outcome::Answered {
            id: whole,
            result: match failed {
                Some(cause) => Err(cause),
                None => Ok(found?),
            },
        })
    }
}

/// What two nodes have found.
fn both(one: Found, other: Found) -> Found {
    match (one, other) {
        (Found::List(one), Found::List(other)) => {
            let keys: BTreeSet<_> = one.into_iter().chain(other).collect();
            Found::List(keys.into_iter().collect())
        }
        (Found::Overview(one), Found::Overview(other)) => {
            let mut locks = one.locks;
            locks.extend(other.locks);
            locks.sort_unstable_by(|a, b| a.key.cmp(&b.key));
            // A slot may have moved in between.
            locks.dedup_by(|a, b| a.key == b.key);
            Found::Overview(Overview::new(locks, None))
        }
        (Found::Diagnose(mut one), Found::Diagnose(other)) => {
            for finding in other {
                if !one.contains(&finding) {
                    one.push(finding);
                }
            }
            Found::Diagnose(one)
        }
        (one, _) => one,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::backend::redis::protocol::reply::ServerSaid;
    use crate::types::key::LockKey;

    fn answered(id: QueryId, names: &[&str]) -> Outcome {
        let found = names.iter().map(|name| LockKey::of(name)).collect();
        let result = Ok(Found::List(found));
        Outcome::Answered { id, result }
    }

    #[test]
    fn a_list_has_what_every_node_has_listed() {
        let mut gathering = Gathering::default();
        let list = QueryId(3);
        let parts = [gathering.part(list), gathering.part(list)];
        assert!(gathering.take_in(answered(parts[1], &["c", "a"])).is_none());
        let whole = gathering.take_in(answered(parts[0], &["b", "a"]));
        let Some(Outcome::Answered {
            id: QueryId(3),
            result: Ok(Found::List(found)),
        }) = whole
        else {
            panic!("{whole:?}");
        };
        let found: Vec<_> = found.iter().map(LockKey::as_str).collect();
        assert_eq!(found, ["a", "b", "c"]);
    }

    #[test]
    fn a_list_without_the_answer_of_a_node_is_an_error() {
        let mut gathering = Gathering::default();
        let list = QueryId(3);
        let parts = [gathering.part(list), gathering.part(list)];
        let failed = Outcome::Answered {
            id: parts[0],
            result: Err(Arc::new(ServerSaid("cut".into()))),
        };
        assert!(gathering.take_in(failed).is_none());
        let whole = gathering.take_in(answered(parts[1], &["a"]));
        assert!(matches!(
            whole,
            Some(Outcome::Answered { result: Err(_), .. })
        ));
    }
}
