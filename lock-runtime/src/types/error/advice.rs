//! The advice in an error: whether and when to retry, and the message for clients of a service.

use std::time::Duration;

use super::LockError;

/// Waiters learn once a second who holds the lock: older knowledge may be out of date.
const PAUSE: Duration = Duration::from_secs(1);
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);

impl LockError {
    /// Whether the same call may succeed later without a change to the program.
    /// [`Lost`](Self::Lost) is not: the work has begun.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// let _other = locks.lock("nightly").acquire().await?;
    /// let refused = locks.lock("nightly").try_once().acquire().await;
    /// assert!(refused.is_err_and(|error| error.is_retryable()));
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Contended { .. } | Self::Unavailable { .. })
    }

    /// How long to wait before the next attempt; `None` if a retry is useless.
    ///
    /// With `n` waiters, it estimates the time until all of them and the holder are served,
    /// assuming that the last `n` took as long as the first of them has waited:
    ///
    /// ```text
    /// retry_after = (n + 1) · (how long the first has waited) / n
    /// ```
    ///
    /// It is at least 10 ms and at most 1 s. Without other waiters, it is the rest of the holder's
    /// lease within these bounds: the work may end earlier, or renew the lease. For a lock in
    /// [cooldown](crate::inspect::Holder::cooling_down), it is the rest of the cooldown, which may
    /// be longer than 1 s.
    ///
    /// For [`Unavailable`](Self::Unavailable), it is 1 s.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Contended { holder, .. } => {
                let Some(holder) = holder else {
                    return Some(PAUSE);
                };
                let left = holder.remaining.unwrap_or(PAUSE).max(SHORTEST_PAUSE);
                if holder.cooling_down {
                    return Some(left);
                }
                let turn = holder.crowd.turn().unwrap_or(left);
                Some(turn.clamp(SHORTEST_PAUSE, PAUSE))
            }
            Self::Unavailable { .. } => Some(PAUSE),
            _ => None,
        }
    }

    /// A sentence for clients of a service. It names no key, host, process, function or server,
    /// unlike the error's own text.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// let _other = locks.lock("order:7").acquire().await?;
    /// let refused = locks.lock("order:7").try_once().acquire().await.unwrap_err();
    /// assert!(refused.to_string().contains("order:7")); // for logs
    /// assert!(!refused.public_message().contains("order:7")); // for clients
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn public_message(&self) -> &'static str {
        match self {
            Self::Contended {
                holder: Some(holder),
                ..
            } if holder.cooling_down => {
                "this was done a short time ago and cannot be repeated yet: try again later"
            }
            Self::Contended { .. } => {
                "somebody else is working on this at the moment: try again later"
            }
            Self::Unavailable { .. } | Self::ShutDown => {
                "the service is not available at the moment: try again later"
            }
            Self::InvalidKey { .. } => "a value in this request is missing or too long",
            Self::Lost { .. } => {
                "the work was interrupted and may have been done in part: \
                 look at its result before trying again"
            }
            Self::InvalidTicket { .. } => {
                "this has expired, or somebody else has taken it over: begin again if it has not been done"
            }
            Self::NotConfigured
            | Self::AlreadyInstalled
            | Self::InvalidOptions { .. }
            | Self::AlreadyHeld { .. } => {
                "the service has made a mistake: trying again does not help"
            }
        }
    }
}
