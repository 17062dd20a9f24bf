//! Looks twice at the holders and waiters of all locks, for the graph of who waits for whom.

use std::collections::{BTreeMap, BTreeSet};

use crate::api::shared::Shared;
use crate::types::error::LockError;
use crate::types::graph::{Graph, Kinds, Look};
use crate::types::holder::Status;
use crate::types::key::LockKey;
use crate::types::overview::{Overview, Summary};
use crate::types::query::{Pattern, Query};

/// How many locks are asked about at once.
const AT_ONCE: usize = 64;

/// How many locks are asked about for which nobody waits at the server.
const MOST_OTHERS: usize = 100;

pub(crate) async fn graph(shared: &Shared) -> Result<Graph, LockError> {
    let (first, unanswered) = first_look(shared).await?;
    let keys = first.keys();
    let (second, unanswered) = if keys.is_empty() {
        (Look::default(), unanswered)
    } else {
        // Between the two looks, so that an edge of both is of a holder in this kind.
        let overview = overview(shared).await?;
        let locks = ask_about(shared, keys).await?;
        (Look::at(&locks, &kinds(&overview)), overview.unanswered)
    };
    Ok(Graph {
        unanswered,
        ..Graph::in_both(&first, second)
    })
}

/// Asks about the locks that are waited for, and about those that their waiters hold.
async fn first_look(shared: &Shared) -> Result<(Look, Vec<Box<str>>), LockError> {
    let overview = overview(shared).await?;
    let mut held_under = BTreeMap::<_, Vec<_>>::new();
    for lock in &overview.locks {
        for holder in &lock.holders {
            held_under.entry(&holder.id).or_default().push(&lock.key);
        }
    }
    let (awaited, others): (Vec<_>, Vec<_>) = overview.locks.iter().partition(|it| it.waiting > 0);
    // Waiters that follow in the process of a holder are known to that process alone.
    let most = if shared.capabilities.answers {
        MOST_OTHERS
    } else {
        0
    };
    let all = awaited.into_iter().chain(others.into_iter().take(most));
    let mut next: BTreeSet<_> = all.map(|it| it.key.clone()).collect();
    let mut asked = BTreeSet::new();
    let mut locks = Vec::new();
    while !next.is_empty() {
        asked.extend(next.iter().cloned());
        let new = ask_about(shared, next).await?;
        let held = new.iter().flat_map(|it| &it.waiters);
        let held = held.flat_map(|it| &it.holds);
        let keys = held.filter_map(|it| held_under.get(&it.id)).flatten();
        next = keys.map(|it| (*it).clone()).collect();
        next.retain(|it| !asked.contains(it));
        locks.extend(new);
    }
    let look = Look::at(&locks, &kinds(&overview));
    Ok((look, overview.unanswered))
}

async fn overview(shared: &Shared) -> Result<Overview, LockError> {
    let pattern = Pattern::new("*");
    shared.query(|reply| Query::Overview(pattern, reply)).await
}

/// The status of each lock.
async fn ask_about(shared: &Shared, keys: BTreeSet<LockKey>) -> Result<Vec<Status>, LockError> {
    let keys: Vec<_> = keys.into_iter().collect();
    let mut locks = Vec::with_capacity(keys.len());
    for keys in keys.chunks(AT_ONCE) {
        let ask = |key| shared.query(|reply| Query::Status(key, reply));
        // All are sent before the first is awaited.
        let asked: Vec<_> = keys.iter().cloned().map(ask).collect();
        for asked in asked {
            locks.push(asked.await?);
        }
    }
    Ok(locks)
}

fn kinds(overview: &Overview) -> Kinds {
    let kind = |it: &Summary| Some((it.key.clone(), it.kind?));
    overview.locks.iter().filter_map(kind).collect()
}
