//! `lockctl ls`: the locks that are held or waited for.

use std::cmp::Ordering;
use std::time::Duration;

use lock_runtime::inspect::{Holder, Kind, Summary};

use crate::cli::{LsArgs, Sort, StoreArgs};
use crate::duration::short;
use crate::exit::{Done, Exit};
use crate::output;
use crate::output::{DIM, Output};
use crate::record;
use crate::since;
use crate::status::{NO_ANSWER, dash, held_for, whereabouts};
use crate::store::connect;
use crate::words::{are_held, count, tame};

pub(crate) async fn ls(store: &StoreArgs, args: &LsArgs, output: &Output) -> Done {
    let locks = connect(store).await?;
    let mut found = locks.overview(&args.pattern).await?.locks;
    found.sort_by(|one, other| order(one, other, args.sort));
    let all = found.len();
    found.truncate(args.limit.unwrap_or(all));
    since::ask(&locks, found.iter_mut()).await;
    if output.is_json() {
        for lock in &found {
            output::object(&record::Lock::from(lock))?;
        }
        return Ok(Exit::Success);
    }
    if found.is_empty() {
        let held = held(&locks.overview("*").await?.locks);
        output::line(format!("{DIM}{}{DIM:#}", nothing(&args.pattern, held)))?;
        return Ok(Exit::Success);
    }
    output::table(&HEADING, found.iter().map(|it| row(it).into()).collect())?;
    if found.len() < all {
        let more = count(all - found.len(), "more lock");
        output::line(format!("{DIM}and {more}{DIM:#}"))?;
    }
    Ok(Exit::Success)
}

/// Which of two comes first; a list that is in the order of names keeps it where this says nothing.
pub(crate) fn order(one: &Summary, other: &Summary, by: Sort) -> Ordering {
    let left = |it: &Summary| {
        let left = it.holders.iter().filter_map(|it| it.remaining).min();
        left.unwrap_or(Duration::MAX)
    };
    match by {
        Sort::Key | Sort::Hot => Ordering::Equal,
        Sort::Waiters => other.waiting.cmp(&one.waiting),
        Sort::Wait => other.longest_wait.cmp(&one.longest_wait),
        Sort::Left => left(one).cmp(&left(other)),
    }
}

/// Why a list is empty: nothing is held, or nothing that is held matches.
fn nothing(pattern: &str, held: usize) -> String {
    if pattern == "*" {
        return "no lock is held or waited for".to_owned();
    }
    let shown = tame(pattern);
    let hint = if pattern.contains(['*', '?']) {
        String::new()
    } else {
        format!("; try `{shown}*`")
    };
    format!("no lock matches `{shown}` ({}){hint}", are_held(held))
}

/// How many wait for these locks.
pub(crate) fn waiting<'a>(locks: impl IntoIterator<Item = &'a Summary>) -> usize {
    let counts = locks.into_iter().map(|it| it.waiting);
    counts.fold(0, usize::saturating_add)
}

/// How many of these locks are held; what cools down is not.
pub(crate) fn held(locks: &[Summary]) -> usize {
    locks.iter().filter(|it| is_held(it)).count()
}

pub(crate) fn is_held(lock: &Summary) -> bool {
    lock.holders.iter().any(|it| !it.cooling_down)
}

/// Whether a holder of the lock does not answer.
pub(crate) fn is_silent(lock: &Summary) -> bool {
    lock.holders.iter().any(|it| it.answers == Some(false))
}

pub(crate) const HEADING: [&str; 8] = [
    "KEY",
    "HELD",
    "HOLDER",
    "FUNCTION",
    "HELD FOR",
    "TIME LEFT",
    "WAITERS",
    "LONGEST WAIT",
];

/// For how long the lock is held, and whether its holder is silent.
fn held_and_silent(it: &Holder) -> String {
    let held = held_for(it);
    if it.answers == Some(false) && it.since.is_some() {
        format!("{held}, {NO_ANSWER}")
    } else {
        held
    }
}

/// The cells of one lock.
pub(crate) fn row(lock: &Summary) -> [String; 8] {
    let first = lock.holders.first();
    let held = match (lock.kind, first) {
        (Some(kind @ Kind::Permits(_)), _) => format!("{} of {kind}", lock.held_by),
        (Some(kind), _) if lock.held_by > 1 => format!("{kind}, by {}", lock.held_by),
        (Some(kind), _) => kind.to_string(),
        (None, Some(holder)) if holder.cooling_down => "cooldown".to_owned(),
        (None, Some(_)) => "held".to_owned(),
        (None, None) => "free".to_owned(),
    };
    let whereabouts = first.map(|it| whereabouts(it.process, it.host.as_deref(), &it.id));
    let function = first.and_then(|it| it.function.as_deref());
    let left = first.map(|it| it.remaining.map_or_else(|| "no end".to_owned(), short));
    [
        tame(lock.key.as_str()).into(),
        held,
        whereabouts.unwrap_or_else(dash),
        function.map_or_else(dash, |it| tame(it).into()),
        first.map_or_else(dash, held_and_silent),
        left.unwrap_or_else(dash),
        lock.waiting.to_string(),
        lock.longest_wait.map_or_else(dash, short),
    ]
}
