//! `lockctl status`: who holds a lock, and who waits for it.

use std::time::SystemTime;

use lock_runtime::inspect::{Holder, Kind, Status, Waiter};

use crate::cli::{StatusArgs, StoreArgs};
use crate::duration::{clock, short};
use crate::exit::{Done, Exit};
use crate::key::key;
use crate::log;
use crate::output;
use crate::output::{BOLD, DIM, GREEN, Output, YELLOW};
use crate::record;
use crate::revoking::silence;
use crate::store::connect;
use crate::words::{count, tame};

pub(crate) async fn status(store: &StoreArgs, args: &StatusArgs, output: &Output) -> Done {
    let locks = connect(store).await?;
    let mut status = locks.status(key(&args.key)).await?;
    log::complete(&locks, &mut status).await;
    let shown = if output.is_json() {
        output::object(&record::Status::from(&status))
    } else {
        status.waiters.truncate(args.queue);
        show(&status)
    };
    output::unless_closed(shown)?;
    let exit = if status.holders.is_empty() {
        Exit::Free
    } else {
        Exit::Success
    };
    Ok(exit)
}

fn show(status: &Status) -> std::io::Result<()> {
    let state = if status.is_held() {
        let shared = match status.holders.len() {
            1 => String::new(),
            holders => format!(" by {holders}"),
        };
        format!("{YELLOW}held{YELLOW:#}{shared}{}", kind(status))
    } else if status.is_cooling_down() {
        format!("{YELLOW}cooldown{YELLOW:#}")
    } else {
        format!("{GREEN}free{GREEN:#}")
    };
    let waiters = match status.waiting {
        0 => "nobody waits".to_owned(),
        1 => "1 waits".to_owned(),
        waiters => format!("{waiters} wait"),
    };
    let key = tame(status.key.as_str());
    output::line(format!("{BOLD}{key}{BOLD:#}  {state}, {waiters}"))?;
    if !status.holders.is_empty() {
        output::line("")?;
        output::table(&HOLDER, status.holders.iter().map(holder_row).collect())?;
        for silent in status.holders.iter().filter(|it| it.answers == Some(false)) {
            let process = whereabouts(silent.process, silent.host.as_deref(), &silent.id);
            output::line(format!("{YELLOW}{process}{YELLOW:#}: {}", silence(silent)))?;
        }
        if status.holders.iter().any(|it| it.may_have_waited) {
            output::line(format!("{DIM}{WAITED}{DIM:#}"))?;
        }
    }
    if !status.waiters.is_empty() {
        output::line("")?;
        let rows = status.waiters.iter().enumerate();
        let rows = rows.map(|(at, waiter)| waiter_row(at + 1, waiter));
        output::table(&WAITER, rows.collect())?;
        let more = status.waiting.saturating_sub(status.waiters.len());
        if more > 0 {
            output::line(format!("{DIM}and {} more{DIM:#}", count(more, "waiter")))?;
        }
    }
    Ok(())
}

/// How the holders share the lock, if they do.
fn kind(status: &Status) -> String {
    match status.kind {
        Some(Kind::Read) => " for reading".to_owned(),
        Some(Kind::Permits(most)) => {
            let taken: u64 = status.holders.iter().map(|it| u64::from(it.permits)).sum();
            format!(
                ", {taken} of {}",
                count(most.try_into().unwrap_or(usize::MAX), "permit")
            )
        }
        _ => String::new(),
    }
}

/// What the times of a holder that may have waited mean.
const WAITED: &str = "SINCE is when the holder joined the queue: it waits or holds since then.";

pub(crate) const HOLDER: [&str; 6] = [
    "HOLDER",
    "FUNCTION",
    "HELD FOR",
    "SINCE",
    "FENCE",
    "TIME LEFT",
];

pub(crate) fn holder_row(it: &Holder) -> Vec<String> {
    vec![
        whereabouts(it.process, it.host.as_deref(), &it.id),
        it.function
            .as_deref()
            .map_or_else(dash, |it| tame(it).into()),
        held_for(it),
        it.since.map_or_else(dash, clock),
        it.fencing_token
            .map_or_else(dash, |it| it.get().to_string()),
        it.remaining.map_or_else(|| "no end".to_owned(), short),
    ]
}

/// What is said of a holder that is silent.
pub(crate) const NO_ANSWER: &str = "no answer";

/// For how long the lock is held, or at most is, behind a `<`; the silence of a holder may keep that unknown.
pub(crate) fn held_for(it: &Holder) -> String {
    let held = it.since.and_then(|since| since.elapsed().ok());
    match held {
        _ if it.cooling_down => "cooldown".to_owned(),
        _ if it.ticket => ticket(it),
        Some(held) if it.may_have_waited => format!("< {}", short(held)),
        Some(held) => short(held),
        None if it.answers == Some(false) => NO_ANSWER.to_owned(),
        None => dash(),
    }
}

/// Until when a ticket keeps the lock closed.
fn ticket(it: &Holder) -> String {
    let end = it
        .remaining
        .and_then(|left| SystemTime::now().checked_add(left));
    end.map_or_else(
        || "ticket".to_owned(),
        |end| format!("ticket, until {}", clock(end)),
    )
}

pub(crate) const WAITER: [&str; 6] = [
    "POSITION",
    "WAITER",
    "FUNCTION",
    "KIND",
    "WAITS FOR",
    "SINCE",
];

pub(crate) fn waiter_row(position: usize, it: &Waiter) -> Vec<String> {
    vec![
        position.to_string(),
        whereabouts(it.process, it.host.as_deref(), &it.id),
        it.function
            .as_deref()
            .map_or_else(dash, |it| tame(it).into()),
        it.kind.to_string(),
        it.waited.map_or_else(dash, short),
        it.waited
            .and_then(|waited| SystemTime::now().checked_sub(waited))
            .map_or_else(dash, clock),
    ]
}

/// The process and its machine, or else what a foreign client wrote.
pub(crate) fn whereabouts(process: Option<u32>, host: Option<&str>, id: &str) -> String {
    match (process, host) {
        (Some(process), Some(host)) => format!("{process}@{}", tame(host)),
        _ => format!("foreign: {}", tame(id)),
    }
}

pub(crate) fn dash() -> String {
    "-".to_owned()
}
