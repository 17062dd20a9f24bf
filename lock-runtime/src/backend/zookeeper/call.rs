//! Requests on their way to the server, and the recipients of their answers.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::protocol::entry::Entry;
use super::protocol::op::Op;
use super::protocol::reply::{Reply, Trouble};
use crate::backend::claims::Turn;
use crate::types::error::Cause;
use crate::types::terms::LeaseId;

/// A request, and the recipient of its answer.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) op: Op,
    pub(crate) to: Recipient,
}

/// The recipient of an answer.
#[derive(Debug)]
pub(crate) enum Recipient {
    Nobody,
    /// The node of the session, which is there or was made.
    Session,
    Heartbeat,
    /// The time of the server's clock.
    Time,
    /// What was watched over the connection before.
    Watches,
    /// The nodes above those of an acquisition's lock.
    Above(LeaseId),
    /// That an acquisition has entered, for those behind it.
    Announcement(LeaseId),
    Claim(Turn, Step),
    /// The same for one that creates or deletes its node alone.
    Alone(Turn, Step),
    /// Acquisitions that create or delete their nodes together.
    Batch(Vec<(Turn, Step)>),
    /// A node that is to go.
    Leftover(String),
    Query(oneshot::Sender<Answered>),
}

/// The answer to a query.
pub(crate) type Answered = Result<Result<Reply, Trouble>, Cause>;

/// The question of an acquisition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The queue, before anything is created.
    Try,
    Create,
    /// That the server knows all that the one before it knew.
    Sync,
    /// The queue; and whether a message follows when it changes.
    Queue {
        watched: bool,
    },
    /// The node that a lost answer was about.
    Found(Entry),
    /// One that is ahead.
    Ahead(Entry),
    /// The holder, for the errors of waiters.
    Front(Entry),
    /// The first waiter, for callers that are refused.
    Waiter(Entry),
    /// Its own node, which others may delete.
    Own,
    /// The last change of a queue in which nobody is ahead any more.
    Changed,
    /// Its own node, after that change.
    Enter,
    Leave,
    /// Its own node, which is to become that of a reader.
    Writer,
    /// It is replaced by that of a reader.
    Downgrade,
    /// That node, which may have been created.
    Reader,
    /// The queue, for the node of a ticket.
    Seek,
    /// That node.
    Ticket(Entry),
    /// The node of a ticket is replaced by its own.
    Adopt(Entry),
    /// Its own node after that.
    Adopted,
    /// The node of its ticket, which may have been created.
    Issued,
    /// The node of a cooldown or ticket beside the holder, for callers that are refused.
    Timed(Entry),
}

impl Call {
    pub(crate) fn new(op: Op, to: Recipient) -> Self {
        Self { op, to }
    }
}

/// The server's trouble as the cause of an error.
pub(crate) fn cause(trouble: Trouble) -> Cause {
    Arc::new(trouble)
}
