//! The state that all handles to one manager share.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::oneshot;

use crate::api::config::LockConfig;
use crate::backend::capabilities::Capabilities;
use crate::driver::{Mailbox, Op};
use crate::types::answer::Reply;
use crate::types::error::{Cause, LockError};
use crate::types::query::Query;
use crate::types::terms::LeaseId;

pub(crate) struct Shared {
    pub(crate) config: LockConfig,
    pub(crate) mailbox: Arc<Mailbox>,
    pub(crate) capabilities: Capabilities,
    next_id: AtomicU64,
}

/// How long the drop of the last handle, or of the value of `init`, waits for pending releases.
const FLUSH: Duration = Duration::from_secs(1);

impl Shared {
    pub(crate) fn new(config: LockConfig, mailbox: Arc<Mailbox>) -> Self {
        Self {
            capabilities: config.target.capabilities(),
            config,
            mailbox,
            next_id: AtomicU64::new(1),
        }
    }

    pub(crate) fn next_id(&self) -> LeaseId {
        LeaseId(self.next_id.fetch_add(1, Ordering::Relaxed))
    }

    /// Sends a query at once; the answer may be awaited later.
    pub(crate) fn query<T>(
        &self,
        query: impl FnOnce(Reply<T>) -> Query,
    ) -> impl Future<Output = Result<T, LockError>> {
        let (reply, answered) = oneshot::channel();
        let _ = self.mailbox.send(Op::Query(query(reply)));
        async {
            let answer = answered.await.map_err(|_| LockError::ShutDown)?;
            answer.map_err(|cause| self.unavailable(cause))
        }
    }

    /// The error of a server that did not answer.
    pub(crate) fn unavailable(&self, cause: Cause) -> LockError {
        LockError::unavailable_at(&self.mailbox.server, cause)
    }

    pub(crate) fn flush(&self) {
        self.mailbox.flush(FLUSH);
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.flush();
    }
}
