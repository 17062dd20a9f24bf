//! The stream of the leaders of an election.

use std::future::poll_fn;
use std::task::{Context, Poll};

use tokio::sync::mpsc;

use crate::types::leader::Leader;

/// The leaders of an [`Election`](crate::Election), from [`observe`](crate::Election::observe).
///
/// It does not keep the manager running: it ends when the manager was shut down, or its last handle and the last
/// guard were dropped. It keeps the leaders that nobody has read yet, so a task that does nothing else
/// should read it.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), lock_runtime::LockError> {
/// # let locks = lock_runtime::LockManager::connect("memory:").await?;
/// let mut leaders = locks.election("reports").observe()?;
/// let _leadership = locks.election("reports").candidate("10.0.0.7:80").campaign().await?;
/// if let Some(leader) = leaders.next().await {
///     println!("{} leads", leader.data);
/// }
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[must_use = "leaders are shown to whoever awaits them"]
pub struct Leaders {
    shown: mpsc::UnboundedReceiver<Leader>,
}

impl Leaders {
    pub(crate) fn new(shown: mpsc::UnboundedReceiver<Leader>) -> Self {
        Self { shown }
    }

    /// The next leader; `None` once the manager has ended. Dropping the future loses no leader.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// let mut leaders = locks.election("reports").observe()?;
    /// locks.shutdown().await;
    /// assert!(leaders.next().await.is_none());
    /// # Ok(()) }
    /// ```
    pub async fn next(&mut self) -> Option<Leader> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// The same for a stream of any library: `poll_fn(move |cx| leaders.poll_next(cx))`.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Leader>> {
        self.shown.poll_recv(cx)
    }
}
