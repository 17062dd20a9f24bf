//! Lists: each node lists the locks of its slots, and the answers are put together.

use std::collections::{BTreeMap, BTreeSet};

use crate::backend::Outcome;
use crate::vocabulary::error::Cause;
use crate::vocabulary::key::LockKey;
use crate::vocabulary::query::{Found, QueryId};

/// The lists that are being put together.
#[derive(Debug, Default)]
pub(super) struct Gathering {
    open: BTreeMap<QueryId, Gathered>,
    /// Which list each part is for.
    parts: BTreeMap<QueryId, QueryId>,
    /// Counted down, since the driver counts up.
    used: u64,
}

#[derive(Debug, Default)]
struct Gathered {
    missing: usize,
    found: BTreeSet<LockKey>,
    failed: Option<Cause>,
}

impl Gathering {
    /// The id of one more part of a list.
    pub(super) fn part(&mut self, list: QueryId) -> QueryId {
        self.used += 1;
        let part = QueryId(u64::MAX - self.used);
        self.parts.insert(part, list);
        self.open.entry(list).or_default().missing += 1;
        part
    }

    /// Lets everything pass but the parts of a list, of which the last becomes the list.
    pub(super) fn take_in(&mut self, outcome: Outcome) -> Option<Outcome> {
        let Outcome::Answered { id, result } = outcome else {
            return Some(outcome);
        };
        let Some(list) = self.parts.remove(&id) else {
            return Some(Outcome::Answered { id, result });
        };
        let gathered = self.open.get_mut(&list)?;
        gathered.missing -= 1;
        match result {
            Ok(Found::List(found)) => gathered.found.extend(found),
            Ok(_) => {}
            Err(cause) => gathered.failed = Some(cause),
        }
        if gathered.missing > 0 {
            return None;
        }
        let gathered = self.open.remove(&list)?;
        let found = || Found::List(gathered.found.into_iter().collect());
        Some(Outcome::Answered {
            id: list,
            result: gathered.failed.map_or_else(|| Ok(found()), Err),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::backend::redis::protocol::reply::ServerSaid;

    fn answered(id: QueryId, names: &[&str]) -> Outcome {
        let found = names.iter().map(|name| LockKey::from(*name)).collect();
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
