//! The requests of the driver to a store and the answers of a store, in terms that hold for
//! every store.

pub(crate) mod capabilities;
#[cfg(test)]
pub(crate) mod chalkboard;
pub(crate) mod claims;
#[cfg(feature = "etcd")]
pub(crate) mod etcd;
pub(crate) mod latency;
pub(crate) mod memory;
pub(crate) mod name;
#[cfg(feature = "postgres")]
pub(crate) mod postgres;
#[cfg(any(
    feature = "etcd",
    feature = "postgres",
    feature = "redis",
    feature = "zookeeper"
))]
pub(crate) mod queries;
#[cfg(any(feature = "postgres", feature = "redis"))]
pub(crate) mod queue;
pub(crate) mod queue_order;
#[cfg(feature = "redis")]
pub(crate) mod redis;
pub(crate) mod scheme;
pub(crate) mod setup;
pub(crate) mod share;
pub(crate) mod target;
#[cfg(feature = "testing")]
pub(crate) mod testing;
pub(crate) mod token;
pub(crate) mod transport;
#[cfg(feature = "zookeeper")]
pub(crate) mod zookeeper;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::backend::capabilities::Capabilities;
use crate::backend::setup::Setup;
use crate::base::clock::Moment;
use crate::types::error::{Cause, LockError};
use crate::types::holder::Holder;
use crate::types::query::Query;
use crate::types::terms::{LeaseId, Terms};
use crate::types::ticket_id::TicketId;

/// A store of locks that a URL names, before it is connected. Errors name it as it
/// is displayed.
pub(crate) trait Target: fmt::Debug + fmt::Display + Send + Sync {
    /// The abilities of its locks.
    fn capabilities(&self) -> Capabilities;

    /// The hosts of encrypted connections; none if connections are not encrypted.
    fn encrypted_hosts(&self) -> Vec<&str> {
        Vec::new()
    }

    /// Whether it has replicas that can confirm what counts.
    fn has_replicas(&self) -> bool {
        false
    }

    /// Whether it waits until locks have ended that a server may have forgotten.
    fn quarantine(&self) -> Quarantine {
        Quarantine::Never
    }

    /// Connects, or says why it cannot.
    fn connect<'a>(&'a self, setup: &'a Setup) -> Connecting<'a>;
}

/// When a store keeps a quarantine after the start of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quarantine {
    /// It cannot.
    Never,
    /// If the setting asks for it.
    IfSet,
    /// Unless the setting is zero.
    UnlessZero,
}

pub(crate) type Connecting<'a> =
    Pin<Box<dyn Future<Output = Result<Box<dyn Backend>, LockError>> + 'a>>;

/// A request of the driver to a backend.
#[derive(Debug)]
pub(crate) enum Request {
    /// Take the lock, waiting in the queue unless it is a try, or adopt the ticket of the
    /// terms. Goes on until it is granted, fails, or is abandoned.
    Acquire(Arc<Terms>),
    /// Nobody wants this acquisition any more: leave the queue, and release a grant
    /// that came at the same time, which skips the cooldown. Answered with
    /// [`Outcome::Released`].
    Abandon(LeaseId),
    /// Extend the lease to its full ttl.
    Renew(LeaseId),
    /// Let a writer go on as a reader, if the lock is still ours, and let in the readers who are
    /// next. Answered with [`Outcome::Downgraded`], or as a renewal that finds it lost.
    Downgrade(LeaseId),
    /// Release the lock, if it is still ours; it cools down if its terms say so. Answered
    /// with [`Outcome::Released`].
    Release(LeaseId),
    /// Let a ticket keep the lock closed for this time, if the lock is still ours. Answered
    /// with [`Outcome::Released`].
    Issue {
        id: LeaseId,
        ticket: TicketId,
        time: Duration,
    },
    /// Answered by itself.
    Query(Query),
}

/// An answer of a backend. Every `since` is a moment before the command was sent that
/// led to the answer, so that deadlines count from there.
#[derive(Debug)]
// Nothing fails in memory.
pub(crate) enum Outcome {
    /// The lock is ours for `ttl` from `since`, which may be shorter than what
    /// was asked for; a renewal restores the full ttl.
    Granted {
        id: LeaseId,
        fence: u64,
        /// Identifies the holder in a status; `None` if that shows no waiter under other locks.
        token: Option<u128>,
        since: Moment,
        ttl: Duration,
    },
    /// In the queue, and the server answers.
    Waiting {
        id: LeaseId,
        holder: Option<Box<Holder>>,
    },
    /// The lock is not closed by the ticket that was to be adopted.
    NoTicket { id: LeaseId },
    /// The one try found it held.
    Busy {
        id: LeaseId,
        holder: Option<Box<Holder>>,
    },
    /// The store cannot be asked at the moment; the backend keeps trying.
    Trouble {
        id: LeaseId,
        cause: Cause,
        /// Whether the answer may still come soon: the connection has broken just now,
        /// and is being opened again.
        soon: bool,
    },
    /// Will never be granted.
    Failed { id: LeaseId, cause: Cause },
    /// The lock is ours for `ttl` from `since`.
    Renewed {
        id: LeaseId,
        since: Moment,
        ttl: Duration,
    },
    /// A renewal found that this holder does not have the lock.
    NotHeld { id: LeaseId },
    /// The store knows that this holder is a reader, or never will.
    Downgraded {
        id: LeaseId,
        result: Result<(), Cause>,
    },
    /// Somebody would like to have the lock. May come more than once.
    Wanted { id: LeaseId },
    /// It is not known whether the renewal succeeded.
    RenewFailed { id: LeaseId, cause: Cause },
    /// The lock is not ours any more; `Ok(true)` if it was until now.
    Released {
        id: LeaseId,
        result: Result<bool, Cause>,
    },
}

impl Outcome {
    /// The acquisition that ends with this outcome; none follows about it.
    pub(crate) fn ended(&self) -> Option<LeaseId> {
        match self {
            Self::NoTicket { id }
            | Self::Busy { id, .. }
            | Self::Failed { id, .. }
            | Self::Released { id, .. } => Some(*id),
            _ => None,
        }
    }
}

/// A store of locks. Lives on the driver's thread; nothing in it may block.
///
/// Between an [`Acquire`](Request::Acquire) and the outcome that ends it, any
/// number of [`Waiting`](Outcome::Waiting) and [`Trouble`](Outcome::Trouble)
/// may come; after an [`Abandon`](Request::Abandon) no grant of it follows.
pub(crate) trait Backend: Send {
    /// Takes note of one request; it is sent by the next poll, together with
    /// all others.
    fn submit(&mut self, now: Moment, request: Request);

    /// The next outcome. Sends what was submitted before.
    fn poll_outcome(&mut self, cx: &mut Context<'_>) -> Poll<Outcome>;

    /// Whether a request should be sent at once. It is `false` while answers are
    /// awaited, since more requests can be sent together when they arrive.
    fn is_quiet(&self) -> bool {
        true
    }

    /// Marks of the keys whose locks are handed over within this process, so that most
    /// requests about them are answered without the store.
    fn chained_keys(&self) -> u64 {
        0
    }
}
