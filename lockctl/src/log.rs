//! `lockctl log` and `last`: the grants of a lock that its store remembers.

use std::time::SystemTime;

use lock_runtime::inspect::{Grant, GrantEnd, Status};
use lock_runtime::{LockKey, LockManager};

use crate::cli::{LastArgs, LogArgs, StoreArgs};
use crate::duration::{clock, short};
use crate::exit::{Done, Exit};
use crate::key::key;
use crate::output;
use crate::output::{BOLD, DIM, GREEN, Output, YELLOW};
use crate::record;
use crate::status::{dash, whereabouts};
use crate::store::connect;
use crate::words::{count, tame};

pub(crate) async fn log(store: &StoreArgs, args: &LogArgs, output: &Output) -> Done {
    let locks = connect(store).await?;
    let key = key(&args.key)?;
    let mut history = locks.history(&key).await?;
    if history.is_empty() {
        return nothing(&key, output);
    }
    let all = history.len();
    history.truncate(args.limit.unwrap_or(all));
    if output.is_json() {
        for grant in &history {
            output::object(&record::Grant::of(&key, grant))?;
        }
        return Ok(Exit::Success);
    }
    output::table(&HEADING, history.iter().map(row).collect())?;
    if history.len() < all {
        let more = count(all - history.len(), "earlier grant");
        output::line(format!("{DIM}and {more}{DIM:#}"))?;
    }
    Ok(Exit::Success)
}

pub(crate) async fn last(store: &StoreArgs, args: &LastArgs, output: &Output) -> Done {
    let locks = connect(store).await?;
    let key = key(&args.key)?;
    let Some(last) = locks.last(&key).await? else {
        return nothing(&key, output);
    };
    if output.is_json() {
        output::object(&record::Grant::of(&key, &last))?;
    } else {
        let name = tame(key.as_str());
        output::line(format!("{BOLD}{name}{BOLD:#}  {}", tell(&last)))?;
        output::line(format!(
            "{}, fencing token {}",
            who(&last),
            last.fencing_token
        ))?;
    }
    Ok(Exit::Success)
}

fn nothing(key: &LockKey, output: &Output) -> Done {
    if !output.is_json() {
        let key = tame(key.as_str());
        output::line(format!(
            "no grant of `{key}` is remembered: the programs that take it have to keep a history, as with \
             LOCK_HISTORY=20"
        ))?;
    }
    Ok(Exit::Free)
}

/// When it began, how long it took, and how it ended.
fn tell(it: &Grant) -> String {
    let (since, took) = (clock(it.since), it.duration().map(short));
    let took = took.unwrap_or_else(dash);
    match (it.end, it.until) {
        (None, _) => format!("{YELLOW}held{YELLOW:#} since {since}, for {}", held_for(it)),
        (Some(GrantEnd::Released), _) => {
            format!("{GREEN}released{GREEN:#}: began {since}, took {took}")
        }
        (Some(GrantEnd::Expired), Some(seen)) => format!(
            "{YELLOW}expired{YELLOW:#}: began {since}, its lease had ended at {}",
            clock(seen)
        ),
        (Some(end), _) => format!("{YELLOW}{end}{YELLOW:#}: began {since}, took {took}"),
    }
}

fn who(it: &Grant) -> String {
    let process = whereabouts(it.process, it.host.as_deref(), &it.id);
    match it.function.as_deref() {
        Some(function) => format!("{process} {}", tame(function)),
        None => process,
    }
}

pub(crate) const HEADING: [&str; 7] = [
    "SINCE", "UNTIL", "HELD FOR", "END", "HOLDER", "FUNCTION", "FENCE",
];

/// A grant in a table; of one that has expired `UNTIL` is when that was seen.
pub(crate) fn row(it: &Grant) -> Vec<String> {
    vec![
        clock(it.since),
        it.until.map_or_else(dash, clock),
        held_for(it),
        it.end
            .map_or_else(|| "held".to_owned(), |it| it.to_string()),
        whereabouts(it.process, it.host.as_deref(), &it.id),
        it.function
            .as_deref()
            .map_or_else(dash, |it| tame(it).into()),
        it.fencing_token.to_string(),
    ]
}

fn held_for(it: &Grant) -> String {
    let held = match it.end {
        None => SystemTime::now().duration_since(it.since).ok(),
        Some(_) => it.duration(),
    };
    match held.map(short) {
        Some(held) if it.end == Some(GrantEnd::Expired) => format!("< {held}"),
        Some(held) => held,
        None => dash(),
    }
}

/// Says of holders that do not answer what the history of their lock knows.
pub(crate) async fn complete(locks: &LockManager, status: &mut Status) {
    let mut holders = status.holders.iter();
    let is_unknown = holders.any(|it| it.answers == Some(false) && it.fencing_token.is_none());
    if !is_unknown || !locks.capabilities().history {
        return;
    }
    // A store that has answered once may be gone; then the rest is shown all the same.
    for grant in locks.history(&status.key).await.unwrap_or_default() {
        for holder in status.holders.iter_mut().filter(|it| it.id == grant.id) {
            holder.since = Some(grant.since);
            holder.fencing_token = Some(grant.fencing_token);
        }
    }
}
