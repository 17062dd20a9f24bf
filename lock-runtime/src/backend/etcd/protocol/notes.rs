//! The notes of grants, which managers that keep a history write in the same transactions as the entries:
//! `most fence since name` and, once the grant has ended, a second line `until how`. All times are wall clocks in
//! milliseconds; a fence of zero stands for the revision that made the note.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::call::{Call, compare, op, put, range};
use super::keys::{Keys, Span};
use super::messages::{
    Compare, DeleteRangeRequest, Expected, KeyValue, PutRequest, RangeRequest, RangeResponse,
    Request, RequestOp, Response, TxnRequest, TxnResponse,
};
use crate::backend::name;
use crate::types::fence::FencingToken;
use crate::types::history::{Grant, GrantEnd};
use crate::types::key::LockKey;

/// How many old notes are read with each grant, to be deleted with its end.
const OLDEST: i64 = 8;
const ASCEND: i32 = 1;
/// To sort by the revision that created a key.
const CREATE: i32 = 2;

/// The note of one grant.
#[derive(Clone, Debug)]
pub(crate) struct Note {
    pub(crate) key: Vec<u8>,
    value: Vec<u8>,
}

impl Note {
    /// `most` is how many grants of the lock are remembered.
    pub(crate) fn new(key: Vec<u8>, most: usize, fence: i64, name: &str) -> Self {
        let value = format!("{most} {fence} {} {name}", now()).into();
        Self { key, value }
    }

    /// Writes the note of an entry that is made, if nobody is ahead of it.
    pub(crate) fn write_if_alone(&self, queue: Span, lease: i64) -> RequestOp {
        let is_empty = Compare {
            range_end: queue.end,
            ..compare(queue.key, Expected::CreateRevision(0))
        };
        op(Request::Txn(TxnRequest {
            compare: vec![is_empty],
            success: vec![put(self.key.clone(), self.value.clone(), lease)],
            failure: Vec::new(),
        }))
    }

    /// Writes the note of an entry, if that was `created` then, after the other operations.
    pub(crate) fn write(
        &self,
        entry: Vec<u8>,
        created: i64,
        others: RequestOp,
        lease: i64,
    ) -> Call {
        Call::Txn(TxnRequest {
            compare: vec![compare(entry, Expected::CreateRevision(created))],
            success: vec![others, put(self.key.clone(), self.value.clone(), lease)],
            failure: Vec::new(),
        })
    }

    /// Adds the end of the grant, if the note is there.
    pub(crate) fn end(&self, end: GrantEnd) -> RequestOp {
        op(Request::Txn(TxnRequest {
            compare: vec![compare(self.key.clone(), Expected::CreateRevision(0))],
            success: Vec::new(),
            failure: vec![self.rewrite(end)],
        }))
    }

    /// Deletes an entry and adds this end to the note of its grant, if both are as they were read.
    pub(crate) fn revoke(entry: Vec<u8>, created: i64, note: Option<KeyValue>) -> RequestOp {
        let mut compares = vec![compare(entry.clone(), Expected::CreateRevision(created))];
        let mut success = vec![delete(entry)];
        if let Some(KeyValue {
            key,
            value,
            mod_revision,
            ..
        }) = note
        {
            compares.push(compare(key.clone(), Expected::ModRevision(mod_revision)));
            success.push(Self { key, value }.rewrite(GrantEnd::Revoked));
        }
        op(Request::Txn(TxnRequest {
            compare: compares,
            success,
            failure: Vec::new(),
        }))
    }

    /// Leaves the note on its lease.
    fn rewrite(&self, end: GrantEnd) -> RequestOp {
        let first = self.value.split(|it| *it == b'\n').next();
        let mut value = first.unwrap_or_default().to_vec();
        value.extend(format!("\n{} {end}", now()).bytes());
        op(Request::Put(PutRequest {
            key: self.key.clone(),
            value,
            lease: 0,
            ignore_lease: true,
        }))
    }
}

/// Deletes a note, or an entry.
pub(crate) fn delete(key: Vec<u8>) -> RequestOp {
    op(Request::DeleteRange(DeleteRangeRequest { key }))
}

/// Reads the first keys of a queue with their values.
pub(crate) fn first(queue: Span, limit: i64) -> RequestOp {
    op(Request::Range(RangeRequest {
        limit,
        sort_order: ASCEND,
        sort_target: CREATE,
        ..range(queue)
    }))
}

/// Reads all notes of a lock.
pub(crate) fn all(notes: Span) -> RequestOp {
    op(Request::Range(range(notes)))
}

/// Reads the oldest notes of a lock, and how many there are.
pub(crate) fn oldest(notes: Span) -> RequestOp {
    op(Request::Range(RangeRequest {
        limit: OLDEST,
        sort_order: ASCEND,
        sort_target: CREATE,
        keys_only: true,
        ..range(notes)
    }))
}

/// The notes that are too many beside a new one.
pub(crate) fn surplus(oldest: RangeResponse, most: usize) -> Vec<Vec<u8>> {
    let count = usize::try_from(oldest.count).unwrap_or(0);
    let surplus = (count + 1).saturating_sub(most);
    let keys = oldest.kvs.into_iter().map(|it| it.key);
    keys.take(surplus).collect()
}

/// Whether the note of a new entry was written with it.
pub(crate) fn is_written(entered: &TxnResponse) -> bool {
    let mut parts = entered.responses.iter();
    parts.any(|it| matches!(&it.response, Some(Response::Txn(part)) if part.succeeded))
}

/// The grants of a lock that its notes remember, the oldest first.
pub(crate) fn grants(keys: &Keys, lock: &LockKey, notes: &[KeyValue]) -> Vec<Grant> {
    let read = notes.iter().filter_map(|note| read(keys, lock, note));
    let mut read: Vec<_> = read.collect();
    read.sort_by_key(|(_, grant)| grant.fencing_token);
    let most = read.last().map_or(0, |(most, _)| *most);
    let first = read.len().saturating_sub(most);
    read.split_off(first)
        .into_iter()
        .map(|(_, it)| it)
        .collect()
}

/// How many are remembered, and a grant.
fn read(keys: &Keys, lock: &LockKey, note: &KeyValue) -> Option<(usize, Grant)> {
    let kind = keys.noted(lock, &note.key)?;
    let text = std::str::from_utf8(&note.value).ok()?;
    let (begin, end) = text.split_once('\n').unwrap_or((text, ""));
    let mut words = begin.splitn(4, ' ');
    let most = words.next()?.parse().ok()?;
    let fence = match words.next()?.parse().ok()? {
        0 => note.create_revision,
        fence => fence,
    };
    let fence = FencingToken::new(u64::try_from(fence).ok()?);
    let since = moment(words.next()?)?;
    let mut grant = Grant::new(name::holder(words.next()?, None), kind, fence, since);
    if let Some((until, how)) = end.split_once(' ') {
        grant.until = moment(until);
        grant.end = match how {
            "revoked" => Some(GrantEnd::Revoked),
            _ => Some(GrantEnd::Released),
        };
    }
    Some((most, grant))
}

fn moment(millis: &str) -> Option<SystemTime> {
    UNIX_EPOCH.checked_add(Duration::from_millis(millis.parse().ok()?))
}

fn now() -> u128 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default().as_millis()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_revoked_only_as_the_one_that_was_read() {
        let note = KeyValue {
            key: b"note".into(),
            mod_revision: 9,
            ..KeyValue::default()
        };
        let revoked = Note::revoke(b"key".to_vec(), 7, Some(note));
        let Some(Request::Txn(part)) = revoked.request else {
            panic!("no part: {revoked:?}");
        };
        let expected: Vec<_> = part.compare.iter().map(|it| it.expected.clone()).collect();
        let read = [Expected::CreateRevision(7), Expected::ModRevision(9)];
        assert_eq!(expected, read.map(Some));
        assert!(matches!(
            &part.success[0].request,
            Some(Request::DeleteRange(delete)) if delete.key == b"key"
        ));
    }
}
