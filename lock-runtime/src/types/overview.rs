//! The state of all locks of a store at one moment, and the changes between two moments.

use std::collections::HashMap;
use std::fmt;
use std::time::{Duration, Instant};

use crate::types::holder::Holder;
use crate::types::key::LockKey;
use crate::types::kind::Kind;
#[cfg(feature = "serde")]
use crate::types::units;

/// How many holders of one shared lock an overview names.
pub(crate) const MOST_HOLDERS: usize = 100;

/// All locks with holders or waiters that match a pattern; see
/// [`LockManager::overview`](crate::LockManager::overview).
#[derive(Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Overview {
    /// The locks, in the order of their names.
    pub locks: Vec<Summary>,
    #[cfg_attr(feature = "serde", serde(skip))]
    taken: Instant,
    #[cfg_attr(feature = "serde", serde(skip))]
    count: Option<Count>,
    /// Why servers of a cluster did not answer, whose locks are missing.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(crate) unanswered: Vec<Box<str>>,
}

/// The basic facts about one lock.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Summary {
    /// The lock's name.
    pub key: LockKey,
    /// Its kind; `None` while it is free or cools down, or if the store does not know.
    pub kind: Option<Kind>,
    /// The holders, with [`since`](Holder::since) and [`fencing_token`](Holder::fencing_token)
    /// only if the store itself knows them. Of more than 100 holders, some are named.
    pub holders: Vec<Holder>,
    /// The number of holders, including those in cooldown.
    pub held_by: usize,
    /// The number of waiters. Unlike [`Status::waiting`](crate::inspect::Status::waiting), it may
    /// include some whose process is gone.
    pub waiting: usize,
    /// How long the first waiter has waited, if the store knows it.
    #[cfg_attr(
        feature = "serde",
        serde(rename = "longest_wait_ms", serialize_with = "units::millis")
    )]
    pub longest_wait: Option<Duration>,
}

/// The counter of acquisitions at some moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Count {
    pub(crate) fence: u64,
    /// Below this number, only acquisitions raise the counter.
    pub(crate) raised_to: u64,
}

/// A change of a lock between two overviews; see [`Overview::changes_since`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Change {
    /// The lock's name.
    pub key: LockKey,
    /// The kind of the change.
    pub kind: ChangeKind,
    /// The new or the former holder.
    pub holder: Holder,
}

/// A kind of [`Change`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChangeKind {
    /// The holder took a free lock, or entered a shared one.
    Granted,
    /// The holder got the lock by a hand-over.
    HandedOver,
    /// The holder released the lock, or the lock was revoked.
    Released,
    /// The holder's lease ended without a release.
    Lost,
}

impl fmt::Debug for Overview {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Overview")
            .field("locks", &self.locks)
            .finish_non_exhaustive()
    }
}

/// `granted`, `handed over`, `released` or `lost`.
impl fmt::Display for ChangeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Granted => "granted",
            Self::HandedOver => "handed over",
            Self::Released => "released",
            Self::Lost => "lost",
        })
    }
}

impl Overview {
    pub(crate) fn new(mut locks: Vec<Summary>, count: Option<Count>) -> Self {
        locks.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        Self {
            locks,
            taken: Instant::now(),
            count,
            unanswered: Vec::new(),
        }
    }

    #[cfg(feature = "redis")]
    pub(crate) fn count(&self) -> Option<Count> {
        self.count
    }

    /// The number of acquisitions since an `earlier` overview, under the whole prefix, including
    /// those too short for either overview. `None` if the store does not count them, or has raised
    /// the counter for another reason.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// let before = locks.overview("*").await?;
    /// locks.lock("stock:lamp").acquire().await?;
    /// match locks.overview("*").await?.grants_since(&before) {
    ///     Some(grants) => println!("{grants} acquisitions"),
    ///     None => println!("the store does not count them"),
    /// }
    /// # Ok(()) }
    /// ```
    pub fn grants_since(&self, earlier: &Self) -> Option<u64> {
        let (now, then) = (self.count?, earlier.count?);
        let grants = now.fence.checked_sub(then.fence)?;
        (now.fence < then.raised_to).then_some(grants)
    }

    /// The changes since an `earlier` overview of the same locks, in the order of their names.
    /// Locks that were taken and released in between are missing;
    /// [`grants_since`](Self::grants_since) counts them.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// use lock_runtime::inspect::ChangeKind;
    ///
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// let before = locks.overview("*").await?;
    /// let _guard = locks.lock("stock:lamp").acquire().await?;
    /// let changes = locks.overview("*").await?.changes_since(&before);
    /// assert_eq!(changes[0].kind, ChangeKind::Granted);
    /// # Ok(()) }
    /// ```
    pub fn changes_since(&self, earlier: &Self) -> Vec<Change> {
        let elapsed = self.taken.saturating_duration_since(earlier.taken);
        let mut before: HashMap<_, _> = earlier.locks.iter().map(|it| (&it.key, it)).collect();
        let mut changes = Vec::new();
        for lock in &self.locks {
            changes_of(before.remove(&lock.key), Some(lock), elapsed, &mut changes);
        }
        let mut gone: Vec<_> = before.into_values().collect();
        gone.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        for lock in gone {
            changes_of(Some(lock), None, elapsed, &mut changes);
        }
        changes
    }
}

fn changes_of(
    before: Option<&Summary>,
    after: Option<&Summary>,
    elapsed: Duration,
    changes: &mut Vec<Change>,
) {
    fn at_work(lock: Option<&Summary>) -> impl Iterator<Item = (&LockKey, &Holder)> + Clone {
        lock.into_iter().flat_map(|lock| {
            let at_work = |it: &&Holder| !it.cooling_down && !it.ticket;
            let holders = lock.holders.iter().filter(at_work);
            holders.map(|holder| (&lock.key, holder))
        })
    }
    let (old, new) = (at_work(before), at_work(after));
    // Only some holders of a widely shared lock are named, so a missing one may still hold it.
    let complete = |lock: Option<&Summary>| lock.is_none_or(|it| it.held_by == it.holders.len());
    if !complete(before) || !complete(after) {
        return;
    }
    // The store may get to know a token after the grant.
    let same = |one: &Holder, other: &Holder| {
        let tokens = one.fencing_token.zip(other.fencing_token);
        one.id == other.id && tokens.is_none_or(|(one, other)| one == other)
    };
    let mut freed = false;
    for (key, holder) in old.clone() {
        if new.clone().any(|(_, it)| same(it, holder)) {
            continue;
        }
        freed = true;
        let left_it_closed = |it: &Holder| it.id == holder.id || it.ticket;
        let is_closed = after.is_some_and(|it| it.holders.iter().any(left_it_closed));
        let ended = holder.remaining.is_some_and(|left| left < elapsed);
        let kind = if ended && !is_closed {
            ChangeKind::Lost
        } else {
            ChangeKind::Released
        };
        changes.push(Change::new(key, kind, holder));
    }
    let awaited = before.is_some_and(|it| it.waiting > 0);
    for (key, holder) in new {
        if old.clone().any(|(_, it)| same(it, holder)) {
            continue;
        }
        let kind = if freed && awaited {
            ChangeKind::HandedOver
        } else {
            ChangeKind::Granted
        };
        changes.push(Change::new(key, kind, holder));
    }
}

impl Change {
    fn new(key: &LockKey, kind: ChangeKind, holder: &Holder) -> Self {
        Self {
            key: key.clone(),
            kind,
            holder: holder.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::fence::FencingToken;

    fn lock(key: &str, holders: &[(&str, u64)], waiting: usize) -> Summary {
        let holder =
            |(id, left): &(&str, u64)| Holder::unknown(*id, Some(Duration::from_millis(*left)));
        Summary {
            key: LockKey::of(key),
            kind: Some(Kind::Exclusive),
            holders: holders.iter().map(holder).collect(),
            held_by: holders.len(),
            waiting,
            longest_wait: None,
        }
    }

    /// The changes within a second.
    fn changes(before: Vec<Summary>, after: Vec<Summary>) -> Vec<(String, ChangeKind, String)> {
        let before = Overview::new(before, None);
        let mut after = Overview::new(after, None);
        after.taken = before.taken + Duration::from_secs(1);
        let tell = |it: Change| (it.key.to_string(), it.kind, it.holder.id.to_string());
        after.changes_since(&before).into_iter().map(tell).collect()
    }

    #[test]
    fn two_overviews_tell_what_has_happened_between_them() {
        use ChangeKind::{Granted, HandedOver, Lost, Released};
        let change = |key: &str, kind, id: &str| (key.to_owned(), kind, id.to_owned());
        let before = vec![
            lock("same", &[("1", 9_000)], 3),
            lock("passed", &[("2", 9_000)], 1),
            lock("freed", &[("3", 9_000)], 0),
            lock("lapsed", &[("4", 500)], 0),
            lock("shared", &[("5", 9_000), ("6", 9_000)], 0),
        ];
        let after = vec![
            lock("same", &[("1", 8_000)], 3),
            lock("passed", &[("7", 9_000)], 0),
            lock("shared", &[("6", 9_000), ("8", 9_000)], 0),
            lock("new", &[("9", 9_000)], 0),
        ];
        let expected = [
            change("new", Granted, "9"),
            change("passed", Released, "2"),
            change("passed", HandedOver, "7"),
            change("shared", Released, "5"),
            change("shared", Granted, "8"),
            change("freed", Released, "3"),
            change("lapsed", Lost, "4"),
        ];
        assert_eq!(changes(before, after), expected);
    }

    #[test]
    fn a_cooldown_begins_with_a_release_and_ends_in_silence() {
        let held = || vec![lock("k", &[("1", 9_000)], 0)];
        let cooling = || {
            let mut locks = held();
            locks[0].holders[0].cooling_down = true;
            locks
        };
        let released = ("k".to_owned(), ChangeKind::Released, "1".to_owned());
        assert_eq!(changes(held(), cooling()), [released]);
        assert_eq!(changes(cooling(), vec![]), []);
    }

    #[test]
    fn a_token_that_becomes_known_is_no_change_and_another_one_is() {
        use ChangeKind::{HandedOver, Released};
        let with = |token: Option<u64>| {
            let mut locks = vec![lock("k", &[("1", 9_000)], 1)];
            locks[0].holders[0].fencing_token = token.map(FencingToken::new);
            locks
        };
        assert_eq!(changes(with(None), with(Some(7))), []);
        assert_eq!(changes(with(Some(7)), with(Some(7))), []);
        let change = |kind| ("k".to_owned(), kind, "1".to_owned());
        let handed_over = [change(Released), change(HandedOver)];
        assert_eq!(changes(with(Some(7)), with(Some(8))), handed_over);
    }

    #[test]
    fn nobody_is_taken_for_gone_where_not_all_are_named() {
        let crowd = |id| {
            let mut locks = vec![lock("k", &[(id, 9_000)], 0)];
            locks[0].held_by = 2;
            locks
        };
        assert_eq!(changes(crowd("1"), crowd("2")), []);
    }

    #[test]
    fn grants_are_counted_unless_the_counter_was_raised() {
        let at = |fence, raised_to| Overview::new(Vec::new(), Some(Count { fence, raised_to }));
        assert_eq!(at(107, 500).grants_since(&at(100, 400)), Some(7));
        assert_eq!(at(450, 500).grants_since(&at(100, 400)), None);
        assert_eq!(at(90, 500).grants_since(&at(100, 400)), None);
        assert_eq!(
            at(1, 2).grants_since(&Overview::new(Vec::new(), None)),
            None
        );
    }
}
