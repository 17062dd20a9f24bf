//! The guard of a leader.

use std::future::Future;

use crate::held::guard::{LockGuard, Lost};
use crate::held::hold::Hold;
use crate::types::fence::FencingToken;

/// The leadership of a [`Candidate`](crate::Candidate), until it is lost, resigned or dropped. Dropping
/// it resigns.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), lock_runtime::LockError> {
/// # let locks = lock_runtime::LockManager::connect("memory:").await?;
/// let leadership = locks.election("reports").candidate("10.0.0.7:80").campaign().await?;
/// leadership.run(async { println!("writes the reports") }).await?;
/// drop(leadership); // resigns
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[must_use = "the candidate resigns as soon as its leadership is dropped"]
pub struct Leadership {
    guard: LockGuard,
}

impl Leadership {
    pub(crate) fn new(guard: LockGuard) -> Self {
        Self { guard }
    }

    /// The fencing token, which is larger than those of all leaders before.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// let first = locks.election("reports").candidate("10.0.0.7:80").campaign().await?;
    /// let earlier = first.fencing_token();
    /// first.resign();
    /// let second = locks.election("reports").candidate("10.0.0.8:80").campaign().await?;
    /// assert!(earlier < second.fencing_token());
    /// # Ok(()) }
    /// ```
    pub fn fencing_token(&self) -> FencingToken {
        self.guard.fencing_token()
    }

    /// Runs `body` for as long as the candidate surely leads, as [`LockGuard::hold`] does.
    ///
    /// # Errors
    ///
    /// [`LockError::Lost`](crate::LockError::Lost) if the leadership was lost first; the body has been
    /// dropped then.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// let leadership = locks.election("reports").candidate("10.0.0.7:80").campaign().await?;
    /// let written = leadership.run(async { 49 }).await?;
    /// leadership.resign();
    /// # Ok(()) }
    /// ```
    pub fn run<F: Future>(&self, body: F) -> Hold<'_, F> {
        self.guard.hold(body)
    }

    /// Resolves when the candidate no longer surely leads.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// let leadership = locks.election("reports").candidate("10.0.0.7:80").campaign().await?;
    /// locks.force_release("reports").await?; // by an operator
    /// leadership.lost().await;
    /// # Ok(()) }
    /// ```
    pub fn lost(&self) -> Lost<'_> {
        self.guard.lost()
    }

    /// The guard of the lock, for all else that a holder can do.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// let leadership = locks.election("reports").candidate("10.0.0.7:80").campaign().await?;
    /// locks.ask("reports").await?; // by a process that is about to replace this one
    /// leadership.guard().asked().await;
    /// leadership.resign();
    /// # Ok(()) }
    /// ```
    pub fn guard(&self) -> &LockGuard {
        &self.guard
    }

    /// Resigns: the next candidate leads. Returns at once.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// let leadership = locks.election("reports").candidate("10.0.0.7:80").campaign().await?;
    /// leadership.resign();
    /// let next = locks.election("reports").candidate("10.0.0.8:80").campaign().await?;
    /// # Ok(()) }
    /// ```
    pub fn resign(self) {
        self.guard.release();
    }
}
