//! What people have to know before they revoke a lock, and the revocation of what they have seen.

use std::time::Duration;

use lock_runtime::inspect::{Holder, Status};
use lock_runtime::{FencingToken, LockError, LockKey, LockManager};
use serde::{Deserialize, Serialize};

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

/// What to do then.
pub(crate) const WAY_OUT: &str = "`lockctl release --force --yes` revokes it from whoever has it";

/// How a holder that the user has seen is told from later ones: tasks of one process may hold a lock one after the other
/// under the same id.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Seen {
    id: Box<str>,
    fence: Option<u64>,
}

/// Revokes a lock whose holders the user has seen, unless it has another one by now.
///
/// One that comes between the last look and the revocation is revoked all the same: stores do not compare holders.
pub(crate) async fn revoke(
    locks: &LockManager,
    key: &LockKey,
    seen: &[Seen],
) -> Result<Revocation, LockError> {
    let status = locks.status(key).await?;
    if has_newcomer(seen, &status) {
        return Ok(Revocation::Changed);
    }
    if status.holders.is_empty() {
        return Ok(Revocation::Free);
    }
    revoke_from(locks, status).await
}

/// Revokes a lock from whoever holds it, about whom this was known.
pub(crate) async fn revoke_from(
    locks: &LockManager,
    mut status: Status,
) -> Result<Revocation, LockError> {
    Ok(match locks.force_release(&status.key).await? {
        0 => Revocation::Free,
        holders => {
            log::complete(locks, &mut status).await;
            Revocation::Done(status, holders)
        }
    })
}

/// Whether somebody holds the lock who was not seen.
pub(crate) fn has_newcomer(seen: &[Seen], status: &Status) -> bool {
    let mut holders = self::seen(status).into_iter();
    holders.any(|holder| !seen.iter().any(|it| it.is(&holder)))
}

/// The holders of a lock.
pub(crate) fn seen(status: &Status) -> Vec<Seen> {
    let holders = status.holders.iter().map(|it| Seen {
        id: it.id.clone(),
        fence: it.fencing_token.map(FencingToken::get),
    });
    holders.collect()
}

impl Seen {
    /// A holder whose process does not answer has no fence.
    fn is(&self, other: &Self) -> bool {
        let fences = self.fence.zip(other.fence);
        self.id == other.id && fences.is_none_or(|(one, other)| one == other)
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_one_of_a_chain_is_told_from_the_one_before() {
        let one = |fence| Seen {
            id: "token".into(),
            fence,
        };
        assert!(one(Some(7)).is(&one(Some(7))));
        assert!(!one(Some(7)).is(&one(Some(8))));
        // Its process has not answered.
        assert!(one(Some(7)).is(&one(None)));
    }
}
