//! What callers put into the driver's mailbox.

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::held::guard::LockGuard;
use crate::held::lease::Lease;
use crate::vocabulary::answer::Answer;
use crate::vocabulary::query::{Found, Query};
use crate::vocabulary::terms::{LeaseId, Terms};

#[derive(Debug)]
pub(crate) enum Op {
    Acquire {
        terms: Arc<Terms>,
        reply: Answer<LockGuard>,
    },
    /// The future of this acquisition was dropped.
    Cancel(LeaseId),
    Release {
        id: LeaseId,
        answer: Option<Answer<bool>>,
    },
    Query(Query, Answer<Found>),
    /// A call has joined a lock, and is to end with this.
    Limit(Arc<Lease>),
    /// Answered when every release that was handed in before it has been done.
    Flush(std::sync::mpsc::Sender<()>),
    /// Answered when no lock is held and every release has been done.
    ShutDown(oneshot::Sender<()>),
}
