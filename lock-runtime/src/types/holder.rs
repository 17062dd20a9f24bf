//! Who holds a lock and who waits for it, and what is known of them.

use std::fmt;
use std::time::{Duration, SystemTime};

use once_cell::sync::Lazy;

use crate::types::crowd::Crowd;
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
    /// The value that identifies the acquisition on the server: a token, or the
    /// value that a foreign client wrote.
    pub id: Box<str>,
    /// How long the holder's lease lasts without a renewal; `None` if a foreign
    /// client set no expiry.
    #[cfg_attr(
        feature = "serde",
        serde(rename = "remaining_ms", serialize_with = "units::millis")
    )]
    pub remaining: Option<Duration>,
    /// The number of its process.
    pub process: Option<u32>,
    /// The name of its machine.
    pub host: Option<Box<str>>,
    /// Module, type and name of the annotated function, or the name that
    /// [`LockRequest::function`](crate::LockRequest::function) was given.
    pub function: Option<Box<str>>,
    /// Since when it holds the lock. On Redis only a [`Status`] knows it, and only if the
    /// holder's process answers; in a cluster also without that, of a lock that is not shared. On ZooKeeper and etcd it is the time at which the holder
    /// joined the queue, so that its wait counts. `None` once it has released the lock.
    #[cfg_attr(
        feature = "serde",
        serde(rename = "since_unix_ms", serialize_with = "units::unix_millis")
    )]
    pub since: Option<SystemTime>,
    /// Its fencing token, under the same conditions. On ZooKeeper and etcd it is the number
    /// of the holder's position in the queue, which is smaller than its token if it has waited.
    pub fencing_token: Option<FencingToken>,
    /// Whether it has released the lock, which cools down until its `min_hold` ends.
    pub cooling_down: bool,
    /// Whether nobody works under the lock, which a [`Ticket`](crate::Ticket) of this holder keeps
    /// closed: until it is adopted, or for what [`remaining`](Self::remaining) says. [`id`](Self::id)
    /// is the beginning of its secret.
    pub ticket: bool,
    /// Whether its process has answered when it was asked about the lock. If it has not within
    /// 300 ms, it is stopped, cut off or gone, and the lock frees itself after `remaining` unless
    /// it is renewed. `None` where it was not asked: only a [`Status`] on Redis asks.
    pub answers: Option<bool>,
    /// How many servers have said that it holds the lock, where a majority of them decides.
    pub servers: Option<usize>,
    /// Who waits for its lock; only where that is contended.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(crate) crowd: Crowd,
}

/// A waiter in the queue of a lock; see [`Status::waiters`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Waiter {
    /// The value that identifies the acquisition on the server.
    pub id: Box<str>,
    /// The number of its process.
    pub process: Option<u32>,
    /// The name of its machine.
    pub host: Option<Box<str>>,
    /// The function that waits, as [`Holder::function`].
    pub function: Option<Box<str>>,
    /// How it asks for the lock.
    pub kind: Kind,
    /// For how long it has waited, where the store knows.
    #[cfg_attr(
        feature = "serde",
        serde(rename = "waited_ms", serialize_with = "units::millis")
    )]
    pub waited: Option<Duration>,
}

/// What is known of a lock; see [`LockManager::status`](crate::LockManager::status).
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Status {
    /// The lock's name.
    pub key: LockKey,
    /// The holders: none, one, or those who share the lock; and those whose release
    /// left it [cooling down](Holder::cooling_down).
    pub holders: Vec<Holder>,
    /// How many wait for it. Redis leaves out a waiter whose process has been silent
    /// for three seconds, if it is among the first thousand; it counts those to whom the
    /// lock is handed over within the holder's process if that answers.
    pub waiting: usize,
    /// Those who wait, in the order in which they will be served: the first thousand of
    /// them, as far as the store knows them. Those to whom the lock is handed over within
    /// the holder's process are left out.
    pub waiters: Vec<Waiter>,
}

impl Status {
    /// A lock that nobody holds and nobody waits for.
    pub(crate) fn free(key: LockKey) -> Self {
        Self {
            key,
            holders: Vec::new(),
            waiting: 0,
            waiters: Vec::new(),
        }
    }

    /// Whether somebody holds the lock and may be working under it, or a
    /// [ticket](Holder::ticket) keeps it closed.
    pub fn is_held(&self) -> bool {
        self.holders.iter().any(|holder| !holder.cooling_down)
    }

    /// Whether nobody holds the lock, but it stays closed until its `min_hold` ends.
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

/// Hosts and functions are named by one word, so that stores can write a holder
/// as words in a line.
pub(crate) fn is_one_word(text: &str) -> bool {
    !text.is_empty() && !text.contains(ends_a_word)
}

fn ends_a_word(c: char) -> bool {
    c.is_whitespace() || c.is_control()
}

impl Holder {
    /// A holder of which nothing is known but its `id`.
    pub(crate) fn unknown(id: impl Into<Box<str>>, remaining: Option<Duration>) -> Self {
        Self {
            id: id.into(),
            remaining,
            process: None,
            host: None,
            function: None,
            since: None,
            fencing_token: None,
            cooling_down: false,
            ticket: false,
            answers: None,
            servers: None,
            crowd: Crowd::default(),
        }
    }

    /// A holder in this process.
    pub(crate) fn here(terms: &Terms, remaining: Duration) -> Self {
        Self {
            process: Some(THIS_PROCESS.id),
            host: Some(THIS_PROCESS.host.as_str().into()),
            function: terms.function.map(Into::into),
            ..Self::unknown(terms.id.0.to_string(), Some(remaining))
        }
    }

    /// Accounts for the time since it was heard of: neither a cooldown nor a ticket is renewed.
    pub(crate) fn heard_before(&mut self, time: Duration) {
        if self.cooling_down || self.ticket {
            self.remaining = self.remaining.map(|it| it.saturating_sub(time));
        }
    }
}

impl Waiter {
    /// A waiter that a store writes down as it does a holder.
    pub(crate) fn new(who: Holder, kind: Kind, waited: Option<Duration>) -> Self {
        Self {
            id: who.id,
            process: who.process,
            host: who.host,
            function: who.function,
            kind,
            waited,
        }
    }
}

#[expect(clippy::missing_fields_in_debug, reason = "one is not public")]
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
            .field("cooling_down", &self.cooling_down)
            .field("ticket", &self.ticket)
            .field("answers", &self.answers)
            .field("servers", &self.servers)
            .finish()
    }
}

/// Where the holder runs, in words.
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

/// Where the waiter runs, in words.
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

#[cfg(unix)]
fn host() -> String {
    rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned()
}

#[cfg(not(unix))]
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
