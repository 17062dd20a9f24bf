//! The holders and waiters of a lock.

use std::fmt;
use std::time::{Duration, SystemTime};

use once_cell::sync::Lazy;

use crate::types::crowd::Crowd;
use crate::types::enclosing::HeldLock;
use crate::types::fence::FencingToken;
use crate::types::key::LockKey;
use crate::types::kind::Kind;
use crate::types::terms::Terms;
#[cfg(feature = "serde")]
use crate::types::units;

/// A holder of a lock.
#[derive(Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Holder {
    /// Identifies the acquisition on the server: a token, or the value of a foreign client.
    pub id: Box<str>,
    /// How long the holder's lease lasts without a renewal; `None` if a foreign client has set no
    /// expiry.
    #[cfg_attr(
        feature = "serde",
        serde(rename = "remaining_ms", serialize_with = "units::millis")
    )]
    pub remaining: Option<Duration>,
    /// The number of its process.
    pub process: Option<u32>,
    /// The name of its machine.
    pub host: Option<Box<str>>,
    /// Module, type and name of the annotated function, or the name from
    /// [`LockRequest::function`](crate::LockRequest::function).
    pub function: Option<Box<str>>,
    /// When it got the lock, or joined its queue if it [may have waited](Self::may_have_waited).
    ///
    /// `None` after the release, and on Redis if the holder's process does not answer, or was not
    /// asked, and has not renewed its lease yet. In a cluster, the holder of an exclusive lock is
    /// dated at once, and those of a shared lock only if they answer.
    #[cfg_attr(
        feature = "serde",
        serde(rename = "since_unix_ms", serialize_with = "units::unix_millis")
    )]
    pub since: Option<SystemTime>,
    /// Its fencing token, under the same conditions; in a cluster only if it answers. On ZooKeeper
    /// and etcd, it is the number of the holder's position in the queue, which is smaller than its
    /// token if it has waited or adopted a ticket. On ZooKeeper, it is that of the downgrade after one.
    pub fencing_token: Option<FencingToken>,
    /// Whether [`since`](Self::since) may be earlier than the grant, by the time that the holder
    /// waited in the queue: on ZooKeeper, and on etcd if it had to wait or its revision is compacted.
    pub may_have_waited: bool,
    /// Whether it has released the lock, which cools down until the end of its `min_hold`.
    pub cooling_down: bool,
    /// Whether nobody works under the lock, which a [`Ticket`](crate::Ticket) of this holder keeps
    /// closed: until it is adopted, or for what [`remaining`](Self::remaining) says. [`id`](Self::id)
    /// is the beginning of its secret.
    pub ticket: bool,
    /// Whether its process has answered. After 300 ms without an answer, the process is stopped,
    /// cut off or gone, and the lock is free after `remaining` unless it is renewed. `None` if it
    /// was not asked: only a [`Status`] on Redis asks.
    pub answers: Option<bool>,
    /// How many permits it has: more than 1 only if it [took](crate::LockRequest::take) several.
    pub permits: u32,
    /// With Redlock, how many servers have confirmed that it holds the lock.
    pub servers: Option<usize>,
    /// What it publishes as a leader.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(crate) data: Option<Box<str>>,
    /// The locks that it held when it asked for this one.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(crate) holds: Vec<HeldLock>,
    /// The waiters for its lock; only in an error about contention.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(crate) crowd: Crowd,
}

/// A waiter in the queue of a lock; see [`Status::waiters`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Waiter {
    /// Identifies the acquisition on the server.
    pub id: Box<str>,
    /// The number of its process.
    pub process: Option<u32>,
    /// The name of its machine.
    pub host: Option<Box<str>>,
    /// The waiting function, as in [`Holder::function`].
    pub function: Option<Box<str>>,
    /// The requested kind.
    pub kind: Kind,
    /// The time it has waited, if the store knows it.
    #[cfg_attr(
        feature = "serde",
        serde(rename = "waited_ms", serialize_with = "units::millis")
    )]
    pub waited: Option<Duration>,
    /// The locks of the same manager that its chain of calls holds meanwhile, the innermost eight:
    /// it asked under them, in the body of an annotated function, of
    /// [`hold`](crate::LockGuard::hold) or [`run`](crate::LockRequest::run), or for several keys at
    /// once. Empty with Redlock and `redis+setnx://`.
    pub holds: Vec<HeldLock>,
}

/// The state of a lock; see [`LockManager::status`](crate::LockManager::status).
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Status {
    /// The lock's name.
    pub key: LockKey,
    /// The kind in which it is held; `None` while it is free or cools down. After a
    /// [downgrade](crate::LockGuard::downgrade) it is that of readers.
    pub kind: Option<Kind>,
    /// The holders: none, one, or those of a shared lock; and those in
    /// [cooldown](Holder::cooling_down).
    pub holders: Vec<Holder>,
    /// The number of waiters. Redis omits a waiter among the first thousand whose process has been
    /// silent for three seconds. Followers in the holder's process are counted if that process
    /// answers.
    pub waiting: usize,
    /// The first thousand waiters, in the order of the queue, as far as the store knows them.
    /// Followers in the holder's process are omitted, except those on Redis that
    /// [hold](Waiter::holds) other locks.
    pub waiters: Vec<Waiter>,
}

impl Status {
    /// A lock without holders and waiters.
    pub(crate) fn free(key: LockKey) -> Self {
        Self {
            key,
            kind: None,
            holders: Vec::new(),
            waiting: 0,
            waiters: Vec::new(),
        }
    }

    /// Whether a holder may be working under the lock, or a [ticket](Holder::ticket) keeps it
    /// closed.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// assert!(!locks.status("stock:lamp").await?.is_held());
    /// let _guard = locks.lock("stock:lamp").acquire().await?;
    /// assert!(locks.status("stock:lamp").await?.is_held());
    /// # Ok(()) }
    /// ```
    pub fn is_held(&self) -> bool {
        self.holders.iter().any(|holder| !holder.cooling_down)
    }

    /// Whether the lock has no holder, but stays closed until the end of a `min_hold`.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// use std::time::Duration;
    ///
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// let guard = locks.lock("nightly").min_hold(Duration::from_secs(60)).acquire().await?;
    /// guard.release_confirmed().await?;
    /// let status = locks.status("nightly").await?;
    /// assert!(status.is_cooling_down() && !status.is_held());
    /// # Ok(()) }
    /// ```
    pub fn is_cooling_down(&self) -> bool {
        !self.is_held() && !self.holders.is_empty()
    }
}

/// A process that can hold locks.
pub(crate) struct Process {
    pub(crate) id: u32,
    /// The name of its machine, in one word.
    pub(crate) host: String,
}

/// This process.
pub(crate) static THIS_PROCESS: Lazy<Process> = Lazy::new(|| Process {
    id: std::process::id(),
    host: host().replace(ends_a_word, "-"),
});

/// Hosts and functions are single words, so that stores can write a holder as words in a line.
pub(crate) fn is_one_word(text: &str) -> bool {
    !text.is_empty() && !text.contains(ends_a_word)
}

fn ends_a_word(c: char) -> bool {
    c.is_whitespace() || c.is_control()
}

impl Holder {
    /// A holder of which only the `id` is known.
    pub(crate) fn unknown(id: impl Into<Box<str>>, remaining: Option<Duration>) -> Self {
        Self {
            id: id.into(),
            remaining,
            process: None,
            host: None,
            function: None,
            since: None,
            fencing_token: None,
            may_have_waited: false,
            cooling_down: false,
            ticket: false,
            answers: None,
            permits: 1,
            servers: None,
            data: None,
            holds: Vec::new(),
            crowd: Crowd::default(),
        }
    }

    /// A holder in this process.
    pub(crate) fn here(terms: &Terms, remaining: Duration) -> Self {
        Self {
            process: Some(THIS_PROCESS.id),
            host: Some(THIS_PROCESS.host.as_str().into()),
            function: terms.function.map(Into::into),
            data: terms.data.as_deref().map(Into::into),
            holds: terms.holds.iter().map(HeldLock::here).collect(),
            permits: terms.take,
            ..Self::unknown(terms.id.0.to_string(), Some(remaining))
        }
    }

    /// Whether it certainly works under this acquisition at the moment. In a chain, several
    /// acquisitions have one id after the other, and only their fencing tokens differ.
    pub(crate) fn works_under(&self, lock: &HeldLock) -> bool {
        let same = self.may_have_waited || self.fencing_token == Some(lock.fencing_token);
        let works = !self.cooling_down && !self.ticket && self.answers != Some(false);
        self.id == lock.id && same && works
    }

    /// Accounts for the age of the information: neither a cooldown nor a ticket is renewed.
    pub(crate) fn heard_before(&mut self, time: Duration) {
        if self.cooling_down || self.ticket {
            self.remaining = self.remaining.map(|it| it.saturating_sub(time));
        }
    }
}

impl Waiter {
    /// A waiter that a store writes in the form of a holder.
    pub(crate) fn new(who: Holder, kind: Kind, waited: Option<Duration>) -> Self {
        Self {
            id: who.id,
            process: who.process,
            host: who.host,
            function: who.function,
            kind,
            waited,
            holds: who.holds,
        }
    }
}

#[expect(clippy::missing_fields_in_debug, reason = "some are not public")]
impl fmt::Debug for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Holder")
            .field("id", &self.id)
            .field("remaining", &self.remaining)
            .field("process", &self.process)
            .field("host", &self.host)
            .field("function", &self.function)
            .field("since", &self.since)
            .field("fencing_token", &self.fencing_token)
            .field("may_have_waited", &self.may_have_waited)
            .field("cooling_down", &self.cooling_down)
            .field("ticket", &self.ticket)
            .field("answers", &self.answers)
            .field("permits", &self.permits)
            .field("servers", &self.servers)
            .finish()
    }
}

/// The place of the holder, in words.
impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_whereabouts(
            f,
            self.process,
            self.host.as_deref(),
            self.function.as_deref(),
        )
    }
}

/// The place of the waiter, in words.
impl fmt::Display for Waiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_whereabouts(
            f,
            self.process,
            self.host.as_deref(),
            self.function.as_deref(),
        )
    }
}

fn write_whereabouts(
    f: &mut fmt::Formatter<'_>,
    process: Option<u32>,
    host: Option<&str>,
    function: Option<&str>,
) -> fmt::Result {
    let (Some(process), Some(host)) = (process, host) else {
        return f.write_str("somebody else");
    };
    match function {
        Some(function) => write!(f, "`{function}` in process {process} on {host}"),
        None => write!(f, "process {process} on {host}"),
    }
}

// The `uname` of Miri leaves bytes unset.
#[cfg(all(unix, not(miri)))]
fn host() -> String {
    rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned()
}

#[cfg(any(not(unix), miri))]
fn host() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_else(|_| "localhost".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::terms::LeaseId;

    #[test]
    fn a_holder_in_this_process_says_where_and_what_for() {
        let terms = Terms {
            function: Some("shop::stock::buy"),
            ..Terms::of(LeaseId(4), "k", Duration::from_secs(1))
        };
        let holder = Holder::here(&terms, Duration::ZERO);
        assert_eq!((&*holder.id, holder.cooling_down), ("4", false));
        assert_eq!(holder.process, Some(std::process::id()));
        assert!(holder.host.as_deref().is_some_and(is_one_word));
        assert_eq!(holder.function.as_deref(), Some("shop::stock::buy"));
        assert_eq!(
            Holder::unknown("4", None).to_string(),
            "somebody else",
            "nobody else knows"
        );
    }
}
