//! What people have to know before they revoke a lock, and the revocation of what they have seen.

use std::time::Duration;

use lock_runtime::inspect::{Holder, Status};
use lock_runtime::{LockError, LockKey, LockManager};

use crate::duration::{clock, short};
use crate::log;
use crate::words::{count, tame};

/// How many holders are described; a shared lock may have thousands.
const MOST: usize = 5;

const FENCES: &str = "Work that is revoked may still write until it stops. A resource that compares fencing tokens \
    rejects such a write once the next holder has written; no store records whether yours does.";

/// What came of a revocation.
#[derive(Debug)]
pub(crate) enum Revocation {
    /// Nobody held the lock.
    Free,
    /// Somebody holds it who was not seen: nothing was changed.
    Changed,
    /// It was taken from so many of these holders.
    Done(Status, usize),
}

/// Revokes a lock whose holders the user has seen, unless it has another one by now.
///
/// A lock that is granted within the last round trips is revoked all the same: stores do not compare holders.
pub(crate) async fn revoke(
    locks: &LockManager,
    key: &LockKey,
    seen: &[Box<str>],
) -> Result<Revocation, LockError> {
    let mut status = locks.status(key).await?;
    if newcomer(seen, &status).is_some() {
        return Ok(Revocation::Changed);
    }
    if status.holders.is_empty() {
        return Ok(Revocation::Free);
    }
    log::complete(locks, &mut status).await;
    Ok(match locks.force_release(key).await? {
        0 => Revocation::Free,
        holders => Revocation::Done(status, holders),
    })
}

/// A holder that was not seen.
pub(crate) fn newcomer<'a>(seen: &[Box<str>], status: &'a Status) -> Option<&'a Holder> {
    status.holders.iter().find(|it| !seen.contains(&it.id))
}

/// How the holders of a lock are told from later ones.
pub(crate) fn ids(status: &Status) -> Vec<Box<str>> {
    status.holders.iter().map(|it| it.id.clone()).collect()
}

/// Who holds the lock, since when and whether it is alive, how many wait, and what may go wrong: a sentence each.
pub(crate) fn prospects(status: &Status) -> Vec<String> {
    let holders = status.holders.iter();
    let mut lines: Vec<_> = holders.take(MOST).map(holder).collect();
    if status.holders.len() > MOST {
        let more = count(status.holders.len() - MOST, "more holder");
        lines.push(format!("{more} share it."));
    }
    lines.push(match status.waiting {
        0 => "Nobody waits for it.".to_owned(),
        1 => "1 waiter gets it next.".to_owned(),
        waiters => format!("{waiters} wait; the first of them gets it next."),
    });
    if status.is_held() {
        lines.push(FENCES.to_owned());
    }
    lines
}

/// A holder, since when it holds the lock, and whether its process answers.
pub(crate) fn holder(it: &Holder) -> String {
    if it.cooling_down {
        let left = it.remaining.map_or_else(|| "a time".to_owned(), short);
        let who = tame(&it.to_string()).into_owned();
        return format!(
            "Nobody works under it: it cools down for another {left} after its release by {who}."
        );
    }
    if it.ticket {
        let left = it.remaining.map_or_else(|| "a time".to_owned(), short);
        let who = tame(&it.to_string()).into_owned();
        return format!(
            "Nobody works under it: a ticket of {who} keeps it for another {left}, unless it is adopted."
        );
    }
    let who = match it.process {
        Some(_) => tame(&it.to_string()).into_owned(),
        None => format!(
            "a foreign client that wrote `{}`, and cannot be notified",
            tame(&it.id)
        ),
    };
    let since = it.since.map_or_else(String::new, |since| {
        let held = since.elapsed().unwrap_or(Duration::ZERO);
        let joined = if it.may_have_waited {
            ", waiting or holding"
        } else {
            ""
        };
        format!("{joined} since {}, for {}", clock(since), short(held))
    });
    let fence = it.fencing_token.map_or_else(String::new, |fence| {
        format!(", with the fencing token {fence}")
    });
    let answers = match it.answers {
        Some(true) => " Its process answers.".to_owned(),
        Some(false) => format!(" {}", silence(it)),
        None => String::new(),
    };
    format!("Held by {who}{since}{fence}.{answers}")
}

/// What follows from the silence of a holder.
pub(crate) fn silence(it: &Holder) -> String {
    match it.remaining {
        Some(left) => format!(
            "It did not answer for 300 ms; the lock frees itself in {} unless it is renewed.",
            short(left)
        ),
        None => "It did not answer for 300 ms, and its lease has no end.".to_owned(),
    }
}
