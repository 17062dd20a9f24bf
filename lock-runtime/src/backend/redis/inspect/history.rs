//! The last grants of a lock, from the log that the scripts keep.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use redis::Value;

use super::{Server, mismatch};
use crate::backend::name;
use crate::backend::queue::protocol::kind;
use crate::backend::redis::protocol::inspection::Inspect;
use crate::backend::redis::protocol::reply::text;
use crate::types::error::Cause;
use crate::types::fence::FencingToken;
use crate::types::history::{self, Grant, GrantEnd};
use crate::types::key::LockKey;
use crate::types::kind::Kind;

impl<C: Copy> Server<C> {
    pub(in crate::backend::redis) async fn history(
        self,
        key: LockKey,
    ) -> Result<Vec<Grant>, Cause> {
        let log = self.ask(Inspect::Log(key)).await?;
        read(&log).ok_or_else(mismatch)
    }
}

/// An entry of the log.
enum Entry {
    Granted(Kind, FencingToken),
    Ended(GrantEnd),
}

/// The grants, the newest first.
pub(super) fn read(log: &Value) -> Option<Vec<Grant>> {
    let Value::Array(items) = log else {
        return None;
    };
    let [Value::Array(holders), entries @ ..] = &items[..] else {
        return None;
    };
    let id = |name| Some(name::holder(&text(name)?, None).id);
    let holders: Vec<_> = holders.iter().map(id).collect::<Option<_>>()?;
    let (mut grants, mut ends) = (HashMap::<String, usize>::new(), HashMap::new());
    let mut history: Vec<Grant> = Vec::new();
    for entry in entries.iter().rev() {
        let entry = text(entry)?;
        let (entry, at, name) = read_entry(&entry)?;
        match (entry, grants.get(name)) {
            (Entry::Ended(end), _) => {
                ends.insert(name.to_owned(), (at, end));
            }
            (Entry::Granted(_, fence), Some(known)) => history[*known].fencing_token = fence,
            (Entry::Granted(kind, fence), None) => {
                grants.insert(name.to_owned(), history.len());
                history.push(Grant::new(name::holder(name, None), kind, fence, at));
            }
        }
    }
    for (name, (until, end)) in ends {
        // The log has dropped the grant of an end that is left alone.
        if let Some(at) = grants.get(&name) {
            (history[*at].until, history[*at].end) = (Some(until), Some(end));
        }
    }
    history::note_expired(&mut history, |it| holders.contains(&it.id));
    history.reverse();
    Some(history)
}

/// An entry, when it was made, and the name that it is about.
fn read_entry(entry: &str) -> Option<(Entry, SystemTime, &str)> {
    let (what, rest) = entry.split_once(' ')?;
    let (at, rest) = rest.split_once(' ')?;
    let at = SystemTime::UNIX_EPOCH.checked_add(Duration::from_micros(at.parse().ok()?))?;
    let (entry, name) = match what {
        "grant" => {
            let (kind, rest) = rest.split_once(' ')?;
            let (fence, name) = rest.split_once(' ')?;
            let fence = FencingToken::new(fence.parse().ok()?);
            (Entry::Granted(kind::parse(kind)?, fence), name)
        }
        "released" => (Entry::Ended(GrantEnd::Released), rest),
        "revoked" => (Entry::Ended(GrantEnd::Revoked), rest),
        _ => return None,
    };
    Some((entry, at, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The log of a lock that these hold, with the oldest entry first.
    fn history(holders: &[&str], entries: &[&str]) -> Vec<Grant> {
        let text = |it: &&str| Value::BulkString((*it).into());
        let holders = Value::Array(holders.iter().map(text).collect());
        let entries = entries.iter().rev().map(text);
        let log = Value::Array(std::iter::once(holders).chain(entries).collect());
        read(&log).expect("a log")
    }

    fn told(grants: &[Grant]) -> Vec<(String, u64, Option<GrantEnd>, Option<u64>)> {
        let micros = |at: SystemTime| {
            let since = at.duration_since(SystemTime::UNIX_EPOCH).expect("later");
            u64::try_from(since.as_micros()).expect("in this age")
        };
        let tell = |it: &Grant| {
            let until = it.until.map(micros);
            (it.id.to_string(), it.fencing_token.get(), it.end, until)
        };
        grants.iter().map(tell).collect()
    }

    #[test]
    fn grants_find_their_ends() {
        use GrantEnd::{Expired, Released, Revoked};
        let entries = [
            "released 10 z 1@h",
            "grant 20 x 5 a 1@h f",
            "grant 30 x 6 b 1@h f",
            "released 31 a 1@h f",
            "revoked 40 b 1@h f",
            "grant 50 x 7 c 1@h",
            "grant 60 x 8 d 1@h",
            "grant 61 x 9 d 1@h",
        ];
        let held = [
            ("d".to_owned(), 9, None, None),
            ("c".to_owned(), 7, Some(Expired), Some(60)),
            ("b".to_owned(), 6, Some(Revoked), Some(40)),
            ("a".to_owned(), 5, Some(Released), Some(31)),
        ];
        assert_eq!(told(&history(&["d 1@h"], &entries)), held);
        assert_eq!(
            told(&history(&[], &entries))[0],
            ("d".to_owned(), 9, Some(Expired), None)
        );
    }

    #[test]
    fn those_who_share_a_lock_end_apart() {
        let entries = ["grant 20 r 5 a 1@h", "grant 30 r 6 b 1@h"];
        let grants = history(&["b 1@h"], &entries);
        assert_eq!(grants[0].end, None);
        assert_eq!(
            (grants[1].end, grants[1].until),
            (Some(GrantEnd::Expired), None)
        );
        assert_eq!((grants[1].kind, grants[1].process), (Kind::Read, Some(1)));
    }
}
