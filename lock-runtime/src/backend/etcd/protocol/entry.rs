//! The entries of a queue, and the values in which they describe themselves:
//! `milliseconds since name`, where `name` says who, `since` is the holder's wall clock
//! in milliseconds, and the first number is how long its lease lasts, or the cooldown or ticket.
//! More lines say that somebody would like to have the lock, and that a writer is a reader now.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::keys::Keys;
use super::messages::KeyValue;
use crate::backend::name;
use crate::backend::queue_order;
use crate::backend::share::Share;
use crate::backend::token::Token;
use crate::types::fence::FencingToken;
use crate::types::holder::{Holder, Waiter};
use crate::types::key::LockKey;
use crate::types::kind::Kind;
use crate::types::ticket_id::TicketId;

/// An acquisition that waits for a lock or holds it.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) lock: LockKey,
    pub(crate) share: Share,
    /// Its lease and its slot, as its key names them.
    place: String,
    /// Its position. Its fence is larger if it has waited.
    pub(crate) created: i64,
    /// When it was written last.
    pub(crate) modified: i64,
    pub(crate) key: Vec<u8>,
    value: Vec<u8>,
}

/// The value of an entry.
pub(crate) fn value(lasts: Duration, name: &str) -> Vec<u8> {
    value_of(lasts, Duration::ZERO, name)
}

/// The value of an entry that has held the lock for this time.
pub(crate) fn value_of(lasts: Duration, held: Duration, name: &str) -> Vec<u8> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let since = since.unwrap_or_default().saturating_sub(held).as_millis();
    format!("{} {since} {name}", lasts.as_millis()).into()
}

/// The value of a holder's entry once somebody would like to have the lock.
fn asked(value: &[u8]) -> Vec<u8> {
    if is_asked(value) {
        return value.to_vec();
    }
    with_line(value, ASKED)
}

/// Whether somebody would like to have the lock.
pub(crate) fn is_asked(value: &[u8]) -> bool {
    has_line(value, ASKED)
}

/// The value of a writer's entry, or the name of that entry, once it is a reader's: the key says
/// that it is a writer's, since it keeps the position.
pub(crate) fn downgraded(value: &[u8]) -> Vec<u8> {
    with_line(value, READS)
}

/// Whether it is that of a reader which was a writer.
pub(crate) fn is_downgraded(value: &[u8]) -> bool {
    has_line(value, READS)
}

const ASKED: &[u8] = b"asked";
const READS: &[u8] = b"reads";

fn with_line(value: &[u8], line: &[u8]) -> Vec<u8> {
    [value, b"\n", line].concat()
}

/// Whether one of the lines behind the first is this one.
fn has_line(value: &[u8], line: &[u8]) -> bool {
    value.split(|it| *it == b'\n').skip(1).any(|it| it == line)
}

/// Whether the value is that of an acquisition which has not been released.
pub(crate) fn is_of(value: &[u8], token: Token) -> bool {
    let name = read_value(value).map(|(_, _, name)| name);
    name.is_some_and(|name| name.split(' ').next() == Some(&*token.to_string()))
}

/// Whether the value is that of a ticket.
pub(crate) fn is_of_ticket(value: &[u8], ticket: TicketId) -> bool {
    let name = read_value(value).map(|(_, _, name)| name);
    name.is_some_and(|name| name::is_of_ticket(ticket, name))
}

/// The entries of a queue in their order. Other keys are left out.
pub(crate) fn queue(keys: &Keys, kvs: Vec<KeyValue>) -> Vec<Entry> {
    let mut queue: Vec<_> = kvs.into_iter().filter_map(|kv| read(keys, kv)).collect();
    queue.sort_unstable_by_key(|entry| entry.created);
    queue
}

fn read(keys: &Keys, kv: KeyValue) -> Option<Entry> {
    let (lock, share, place) = keys.read(&kv.key)?;
    let reads = is_downgraded(&kv.value);
    Some(Entry {
        lock,
        share: if reads { Kind::Read.into() } else { share },
        place: place.to_owned(),
        created: kv.create_revision,
        modified: kv.mod_revision,
        key: kv.key,
        value: kv.value,
    })
}

/// How many of a queue hold the lock.
pub(crate) fn holders(queue: &[Entry]) -> usize {
    queue_order::holders(queue.iter().map(|it| it.share))
}

impl Entry {
    /// The holder, as far as the value describes it.
    pub(crate) fn holder(&self) -> Holder {
        let Some((lasts, since, name)) = self.read_value() else {
            return Holder::unknown(&*self.place, None);
        };
        let mut holder = name::holder(name, Some(lasts));
        holder.permits = self.share.take;
        if holder.cooling_down || holder.ticket {
            holder.remaining = Some(lasts.saturating_sub(self.age()));
        } else {
            holder.since = Some(since);
            holder.may_have_waited = true;
            holder.fencing_token = Some(FencingToken::new(self.fence()));
        }
        holder
    }

    /// The same of one who waits.
    pub(crate) fn waiter(&self) -> Waiter {
        Waiter::new(self.holder(), self.share.kind, Some(self.age()))
    }

    /// Its value once somebody would like to have the lock.
    pub(crate) fn asked(&self) -> Vec<u8> {
        asked(&self.value)
    }

    /// Whether it held the lock as soon as it was made, by the queue of that time.
    pub(crate) fn entered_at_once(&self, queue: &[Self]) -> bool {
        let mut holders = queue.iter().take(holders(queue));
        holders.any(|it| it.key == self.key)
    }

    /// Whether its grant is noted there, and has not ended.
    pub(crate) fn is_noted(&self, note: &KeyValue) -> bool {
        let is_its_own = note.key.ends_with(self.holder().id.as_bytes());
        is_its_own && !note.value.contains(&b'\n')
    }

    pub(crate) fn fence(&self) -> u64 {
        u64::try_from(self.created).unwrap_or(0)
    }

    /// How long ago its value was written, by the clocks of both machines.
    pub(crate) fn age(&self) -> Duration {
        let since = self.read_value().map(|(_, since, _)| since);
        let age = since.and_then(|since| since.elapsed().ok());
        age.unwrap_or_default()
    }

    fn read_value(&self) -> Option<(Duration, SystemTime, &str)> {
        read_value(&self.value)
    }
}

fn read_value(value: &[u8]) -> Option<(Duration, SystemTime, &str)> {
    let mut parts = std::str::from_utf8(value).ok()?.splitn(3, ' ');
    let mut number = || parts.next()?.parse().ok().map(Duration::from_millis);
    let (lasts, since) = (number()?, number()?);
    let (name, _) = parts
        .next()
        .map(|it| it.split_once('\n').unwrap_or((it, "")))?;
    Some((lasts, UNIX_EPOCH.checked_add(since)?, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token() -> Token {
        Token::new().expect("random numbers")
    }

    fn entry(keys: &Keys, share: impl Into<Share>, created: i64) -> KeyValue {
        let token = token();
        KeyValue {
            key: keys.entry(&LockKey::of("k"), share.into(), created, 0),
            create_revision: created,
            mod_revision: created,
            value: value(
                Duration::from_secs(10),
                &format!("{token} 7@host shop::buy"),
            ),
        }
    }

    #[test]
    fn a_queue_is_in_the_order_of_creation_and_its_front_holds_the_lock() {
        let keys = Keys::new("lock");
        let take = |take, most| Share {
            kind: Kind::Permits(most),
            take,
        };
        let [writer, reader] = [Kind::Exclusive, Kind::Read].map(Share::from);
        for (shares, held) in [
            (&[][..], 0),
            (&[writer, writer], 1),
            (&[reader, reader, writer, reader], 2),
            (&[take(1, 2), take(1, 2), take(1, 2)], 2),
            (&[take(1, 2), take(1, 3)], 1),
            (&[take(3, 4), take(1, 4), take(1, 4)], 2),
            (&[take(3, 4), take(2, 4), take(1, 4)], 1),
        ] {
            let mut kvs: Vec<_> = (5..)
                .zip(shares)
                .map(|(at, it)| entry(&keys, *it, at))
                .collect();
            kvs.reverse();
            kvs.push(KeyValue {
                key: b"lock/k/694d9ef1d7b5570c".into(),
                create_revision: 1,
                ..KeyValue::default()
            });
            let queue = queue(&keys, kvs);
            let read: Vec<_> = queue.iter().map(|it| it.share).collect();
            assert_eq!((&read[..], holders(&queue)), (shares, held));
        }
    }

    #[test]
    fn an_entry_says_whose_it_is() {
        let (mine, other) = (token(), token());
        let lasts = Duration::from_secs(10);
        let value = value(lasts, &format!("{mine} 7@host"));
        assert!(is_of(&value, mine) && !is_of(&value, other));
        assert!(!is_of(b"something else", mine));
    }

    #[test]
    fn an_entry_says_who_since_when_and_for_how_long() {
        let keys = Keys::new("lock");
        let read = |kv| queue(&keys, vec![kv]).remove(0).holder();
        let holder = read(entry(&keys, Kind::Exclusive, 9));
        assert_eq!(holder.process, Some(7));
        assert_eq!(holder.function.as_deref(), Some("shop::buy"));
        assert_eq!(holder.remaining, Some(Duration::from_secs(10)));
        assert_eq!(holder.fencing_token, Some(FencingToken::new(9)));
        assert!(holder.since.is_some_and(|it| it.elapsed().is_ok()));

        let mut kv = entry(&keys, Kind::Exclusive, 9);
        kv.value = value(Duration::from_secs(5), "-token 7@host");
        let cooling = read(kv.clone());
        assert!(cooling.cooling_down && cooling.fencing_token.is_none() && cooling.since.is_none());
        assert!(
            cooling
                .remaining
                .is_some_and(|it| it <= Duration::from_secs(5))
        );

        kv.value = b"something else".into();
        assert_eq!(read(kv).process, None);
    }
}
