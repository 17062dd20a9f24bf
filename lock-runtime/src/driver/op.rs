//! The operations that callers send to the driver.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::observers::Observer;
use crate::held::guard::LockGuard;
use crate::held::lease::Lease;
use crate::types::answer::Answer;
use crate::types::key::LockKey;
use crate::types::query::Query;
use crate::types::terms::{LeaseId, Terms};
use crate::types::ticket_id::TicketId;

#[derive(Debug)]
pub(crate) enum Op {
    Acquire {
        terms: Arc<Terms>,
        reply: Answer<LockGuard>,
    },
    /// The ticket that these terms adopt has reached nobody: frees its lock.
    TakeBack(Arc<Terms>),
    /// The future of this acquisition was dropped.
    Cancel(LeaseId),
    Release {
        id: LeaseId,
        answer: Option<Answer<bool>>,
    },
    /// Lets a ticket keep the lock closed for this time; the answer says whether the lock was still
    /// held.
    Issue {
        id: LeaseId,
        ticket: TicketId,
        time: Duration,
        answer: Answer<bool>,
    },
    /// Lets a writer go on as a reader; the answer says whether the lock was still held.
    Downgrade {
        id: LeaseId,
        answer: Answer<bool>,
    },
    /// No poll runs any more under a lease that has ended.
    PollReturned(LeaseId),
    Query(Query),
    /// Shows the leaders of an election from now on.
    Observe(LockKey, Observer),
    /// A call has joined a lock, and this lease limits it.
    Limit(Arc<Lease>),
    /// Answered when every release that was sent before it is done.
    Flush(std::sync::mpsc::Sender<()>),
    /// Answered when no lock is held and every release is done.
    ShutDown(oneshot::Sender<()>),
}

impl Op {
    /// Whether a caller awaits its outcome.
    pub(super) fn is_awaited(&self) -> bool {
        matches!(
            self,
            Self::Acquire { .. }
                | Self::Downgrade { .. }
                | Self::Issue { .. }
                | Self::Release {
                    answer: Some(_),
                    ..
                }
        )
    }
}
