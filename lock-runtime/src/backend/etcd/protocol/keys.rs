//! The names of keys: `{prefix}/{lock}/{share}-{lease}-{slot}`. Shares are written so that
//! the keys of `etcdctl lock`, which end in hexadecimal digits, are outside of a queue.

use crate::backend::share::Share;
use crate::backend::token::Token;
use crate::types::key::LockKey;
use crate::types::kind::Kind;
use crate::types::ticket_id::TicketId;

/// A range of keys: from the first up to the second, which is not part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) key: Vec<u8>,
    pub(crate) end: Vec<u8>,
}

/// What the keys of notes begin with, behind the prefix. No lock has an empty name.
const NOTES: &str = "/history/";

/// Writes and reads keys.
#[derive(Debug)]
pub(crate) struct Keys {
    /// With its `/`.
    prefix: String,
}

impl Keys {
    pub(crate) fn new(prefix: &str) -> Self {
        Self {
            prefix: format!("{prefix}/"),
        }
    }

    /// The entry of one acquisition, in a slot that belongs to the owner of the lease.
    pub(crate) fn entry(&self, lock: &LockKey, share: Share, lease: i64, slot: u64) -> Vec<u8> {
        let queue = self.queue_of(lock);
        format!("{queue}{share}-{lease:016x}-{slot}").into()
    }

    /// All entries of a lock.
    pub(crate) fn queue(&self, lock: &LockKey) -> Span {
        let queue = self.queue_of(lock);
        Span {
            key: format!("{queue}p").into(),
            end: format!("{queue}y").into(),
        }
    }

    /// The entries of readers in a lock's queue.
    pub(crate) fn readers(&self, lock: &LockKey) -> Span {
        let (queue, share) = (self.queue_of(lock), Share::from(Kind::Read));
        Span {
            key: format!("{queue}{share}-").into(),
            // The character that follows `-`.
            end: format!("{queue}{share}.").into(),
        }
    }

    /// The entries of all locks: what is on both sides of the notes.
    pub(crate) fn all(&self) -> [Span; 2] {
        let notes = below(&format!("{}{NOTES}", self.prefix));
        let all = below(&self.prefix);
        [
            Span {
                key: all.key,
                end: notes.key,
            },
            Span {
                key: notes.end,
                end: all.end,
            },
        ]
    }

    /// The note of one grant.
    pub(crate) fn note(&self, lock: &LockKey, kind: Kind, token: Token) -> Vec<u8> {
        let (notes, share) = (self.notes_of(lock), Share::from(kind));
        format!("{notes}{share}-{token}").into()
    }

    /// The notes of all grants of a lock.
    pub(crate) fn notes(&self, lock: &LockKey) -> Span {
        below(&self.notes_of(lock))
    }

    /// The kind of the grant that a note of this lock is about.
    pub(crate) fn noted(&self, lock: &LockKey, key: &[u8]) -> Option<Kind> {
        let key = std::str::from_utf8(key).ok()?;
        let (kind, _) = key.strip_prefix(&self.notes_of(lock))?.split_once('-')?;
        Share::parse(kind).map(|it| it.kind)
    }

    /// The key that shows that a lease lives. No lock has an empty name.
    pub(crate) fn marker(&self, lease: i64) -> Vec<u8> {
        format!("{}/lease-{lease:016x}", self.prefix).into()
    }

    /// The key that says which entry a ticket is for.
    pub(crate) fn ticket(&self, id: TicketId) -> Vec<u8> {
        format!("{}/ticket-{id}", self.prefix).into()
    }

    /// A key that never exists.
    pub(crate) fn nothing(&self) -> Vec<u8> {
        format!("{}/nothing", self.prefix).into()
    }

    /// The lock and the share of an entry, and its lease and slot; `None` of any other key.
    pub(crate) fn read<'a>(&self, key: &'a [u8]) -> Option<(LockKey, Share, &'a str)> {
        let key = std::str::from_utf8(key).ok()?;
        let (lock, entry) = key.strip_prefix(&self.prefix)?.split_once('/')?;
        let (share, place) = entry.split_once('-')?;
        let share = Share::parse(share)?;
        let (lease, slot) = place.split_once('-')?;
        let is_lease = lease.len() == 16 && lease.bytes().all(|it| it.is_ascii_hexdigit());
        let is_slot = !slot.is_empty() && slot.bytes().all(|it| it.is_ascii_digit());
        let lock = LockKey::unchecked(&lock.replace("%2F", "/"));
        (is_lease && is_slot).then_some((lock, share, place))
    }

    fn queue_of(&self, lock: &LockKey) -> String {
        format!("{}{}/", self.prefix, word(lock))
    }

    fn notes_of(&self, lock: &LockKey) -> String {
        format!("{}{NOTES}{}/", self.prefix, word(lock))
    }
}

/// A name without a `/`. No name has a `%2F` of its own: it stands for `%252F`.
fn word(lock: &LockKey) -> String {
    lock.as_str().replace('/', "%2F")
}

/// All keys that begin with a text, which ends in `/`.
fn below(start: &str) -> Span {
    let key = start.as_bytes().to_vec();
    let mut end = key.clone();
    end.pop();
    end.push(b'/' + 1);
    Span { key, end }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_as_it_was_written() {
        let keys = Keys::new("lock");
        for name in ["stock:7", "a/b", "%2F", "a%2Fb", "/", "ünï"] {
            let three = Share {
                kind: Kind::Permits(12),
                take: 3,
            };
            for share in [
                Kind::Exclusive.into(),
                Kind::Read.into(),
                Kind::Permits(12).into(),
                three,
            ] {
                let lock = LockKey::of(name);
                let key = keys.entry(&lock, share, 0x694d_9ef1, 7);
                let queue = keys.queue(&lock);
                assert!(queue.key <= key && key < queue.end, "{name}");
                let readers = keys.readers(&lock);
                let reads = readers.key <= key && key < readers.end;
                assert_eq!(reads, share.kind == Kind::Read, "{name}");
                assert!(keys.all().iter().any(|it| it.key <= key && key < it.end));
                let place = "00000000694d9ef1-7";
                assert_eq!(keys.read(&key), Some((lock, share, place)));
            }
        }
    }

    #[test]
    fn a_note_is_beside_the_entries() {
        let keys = Keys::new("lock");
        let token = Token::new().expect("random numbers");
        for name in ["stock:7", "a/b", "history", "!"] {
            let lock = LockKey::of(name);
            for kind in [Kind::Exclusive, Kind::Read, Kind::Permits(12)] {
                let note = keys.note(&lock, kind, token);
                let notes = keys.notes(&lock);
                assert!(notes.key <= note && note < notes.end, "{name}");
                assert_eq!(keys.noted(&lock, &note), Some(kind));
                assert_eq!(keys.noted(&LockKey::of("other"), &note), None);
                assert!(!keys.all().iter().any(|it| it.key <= note && note < it.end));
            }
        }
    }

    #[test]
    fn what_others_write_is_no_entry() {
        let keys = Keys::new("lock");
        let token = Token::new().expect("random numbers");
        let note = keys.note(&LockKey::of("stock:7"), Kind::Exclusive, token);
        let queue = keys.queue(&LockKey::of("stock:7"));
        // As `etcdctl lock lock/stock:7` writes it.
        let foreign = b"lock/stock:7/694d9ef1d7b5570c";
        assert!(!(queue.key[..] <= foreign[..] && foreign[..] < queue.end[..]));
        for foreign in [
            &foreign[..],
            b"lock/stock:7/x-1",
            b"lock/stock:7/x-00000000694d9ef1",
            b"lock/stock:7/x-00000000694d9ef1-",
            b"lock/stock:7/x-694d9ef1-7",
            b"lock/stock:7",
            b"shop/stock:7/x-00000000694d9ef1-7",
            b"lock/stock:7/y-00000000694d9ef1-7",
            b"lock/stock:7/p4x-00000000694d9ef1-7",
            b"lock/a/b/x-00000000694d9ef1-7",
            &keys.marker(7),
            &keys.ticket(TicketId(7)),
            &note,
        ] {
            assert_eq!(keys.read(foreign), None, "{}", foreign.escape_ascii());
        }
    }
}
