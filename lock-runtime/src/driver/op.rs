//! The operations that callers send to the driver.

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::held::guard::LockGuard;
use crate::held::lease::Lease;
use crate::types::answer::Answer;
use crate::types::query::Query;
use crate::types::terms::{LeaseId, Terms};

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
    /// No poll runs any more under a lease that has ended.
    PollReturned(LeaseId),
    Query(Query),
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
                | Self::Release {
                    answer: Some(_),
                    ..
                }
        )
    }
}
