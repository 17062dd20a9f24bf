//! The orders of the queue to the links, and their outcomes.

use std::time::Duration;

use tokio::sync::oneshot;

use crate::backend::claims::Turn;
use crate::backend::etcd::protocol::call::{Reply, Sent};
use crate::backend::etcd::protocol::keys::Span;
use crate::backend::etcd::protocol::trouble::Trouble;
use crate::base::clock::Moment;

/// The pause before a call is sent again.
pub(super) const PAUSE: Duration = Duration::from_millis(100);
/// The pause before a release is sent again that was forbidden.
pub(super) const LONG_PAUSE: Duration = Duration::from_secs(1);

/// How long a waiter relies on its watch: a proxy, or the member behind it, may have dropped that without ending it.
pub(super) const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// The query that awaits the answer to a call.
pub(crate) type AskedBy = oneshot::Sender<Result<Reply, Trouble>>;

/// The subject of a call.
#[derive(Clone, Debug)]
pub(crate) enum Recipient {
    /// The session of this ttl.
    Session(Duration, SessionStep),
    Claim(Turn, Step),
    /// The calls of several claims, which go as the transaction of this number.
    Batch(u64),
    /// A query awaits the answer to the call of this number.
    Query(u64),
    /// The lease of the notes of grants.
    Notes,
    /// The members of the cluster, which the links keep.
    Cluster,
}

/// The purpose of a claim's call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Step {
    /// Makes the entry.
    Enter,
    /// Reads whether the entry is there, and the entries ahead of it.
    Look,
    /// Announces that it has entered.
    Announce,
    /// Looks whether the entry is still there.
    Check,
    Delete,
    /// Notes the grant.
    Note,
    /// Makes the lease on which the lock cools down.
    Lease,
    /// Moves the entry there.
    Move,
    /// Turns the entry of a writer into that of a reader.
    Downgrade,
    /// Lets a ticket keep the entry.
    Issue,
    /// Looks for the entry of a ticket, or of an adopter that has gone away.
    Seek,
    /// Turns the entry of a ticket into one of its own.
    Adopt,
}

impl Step {
    /// Whether it makes or deletes an entry.
    pub(super) fn is_write(self) -> bool {
        matches!(self, Self::Enter | Self::Delete)
    }
}

/// An order to send something.
#[derive(Debug)]
pub(crate) enum Order {
    Call(Sent<Recipient>),
    Watch(Watch),
    Unwatch(u64),
}

/// A key or a span that is watched.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Watch {
    pub(crate) id: u64,
    pub(crate) span: Span,
    /// From which revision on; zero is from now on. Members serve earlier events every
    /// 100 ms only.
    pub(crate) from: i64,
    /// Whether writing counts, or deletions alone.
    pub(crate) writes: bool,
}

/// An event of a watch.
#[derive(Debug)]
pub(crate) enum Seen {
    /// It shows what happens after this revision.
    Begun(i64),
    /// Something was written at this revision.
    Changed(i64),
    /// Something was deleted at this revision.
    Deleted(i64),
    /// It has ended without an event: the events that it missed may be compacted.
    Ended,
}

/// The purpose of a session's call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum SessionStep {
    Grant,
    /// Writes the marker of this lease.
    Mark(i64),
    /// The keep-alive that was sent at this moment.
    Alive(Moment),
    /// Looks for the marker, for the keep-alive that was sent at `beat`.
    Look {
        beat: Moment,
        /// Whether that is after a majority has answered.
        after_majority: bool,
        /// A revision that was there before.
        floor: i64,
    },
}
