//! The errors: what happened, and what to do about it.

mod advice;
pub(crate) mod conversion;
#[cfg(feature = "testing")]
mod testing;

use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::types::fence::FencingToken;
use crate::types::holder::Holder;
use crate::types::key::LockKey;

/// The message of a store about a failure; shared, since one broken connection fails many
/// operations.
pub(crate) type Cause = Arc<dyn Error + Send + Sync>;

/// Why a lock was not taken, or why the work under it was stopped.
///
/// From annotated functions and [`run`](crate::LockRequest::run), only [`Lost`](Self::Lost) means
/// that the work has begun.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// No manager has been installed.
    #[error(
        "no lock manager is installed: call lock_runtime::init(url) once at startup, \
         or name one with `manager = …`"
    )]
    NotConfigured,

    /// A manager has been installed before, and stays installed.
    #[error(
        "a lock manager is installed already: call lock_runtime::init once, and use a second manager \
         with its `scope`, or with `manager = …`"
    )]
    AlreadyInstalled,

    /// The name of the lock is invalid.
    #[error("the lock's key cannot be used: {reason}")]
    #[non_exhaustive]
    InvalidKey {
        /// The reason.
        reason: &'static str,
    },

    /// A setting is out of range, or contradicts another one.
    #[error("invalid {setting}: {reason}")]
    #[non_exhaustive]
    InvalidOptions {
        /// The setting's name.
        setting: &'static str,
        /// What is wrong with it, and what is valid.
        reason: Box<str>,
    },

    /// Until the wait ended, the lock was held or in its cooldown; or its queue was
    /// [full](crate::LockRequest::max_waiters).
    #[error(
        "lock `{key}` {}{}",
        closed(holder.as_deref()), refused(holder.as_deref(), *waited)
    )]
    #[non_exhaustive]
    Contended {
        /// The lock's name.
        key: LockKey,
        /// How long the caller has waited, for all of several keys together.
        waited: Duration,
        /// The holder, as far as the server knows it, or the last holder of a lock in
        /// [cooldown](Holder::cooling_down).
        holder: Option<Box<Holder>>,
    },

    /// The server did not answer, or refused to serve.
    #[error("{server} is unavailable: {cause}")]
    #[non_exhaustive]
    Unavailable {
        /// The server, without its password: `Redis at 127.0.0.1:6379`.
        server: Arc<str>,
        /// The message of the server or the connection. It is part of the sentence, and therefore
        /// not the [`source`](Error::source) of the error: reports that print both would repeat
        /// it.
        cause: Box<dyn Error + Send + Sync>,
    },

    /// The lease ended while the work was running; the work was stopped.
    #[error(
        "lock `{key}` was lost while it was held (fencing token {fencing_token}): the work was stopped, \
         look at what it had done before running it again"
    )]
    #[non_exhaustive]
    Lost {
        /// The lock's name.
        key: LockKey,
        /// The token of the lost acquisition.
        fencing_token: FencingToken,
    },

    /// The caller already runs under this lock, and would wait for itself. This is noticed across
    /// `join!` and `select!` too. Spawned tasks are different work, and wait.
    #[error(
        "lock `{key}` is already held by the work that asks for it, which would wait for itself: \
         call the part that needs the lock without taking it again, or make the inner one `reentrant`"
    )]
    #[non_exhaustive]
    AlreadyHeld {
        /// The lock's name.
        key: LockKey,
    },

    /// The ticket does not keep its lock closed any more: its time has ended, it was adopted before, or
    /// the lock was [revoked](crate::LockManager::force_release).
    #[error(
        "the ticket for lock `{key}` is not valid any more: it has expired, was adopted before, or was revoked; \
         take the lock anew if the work has not been done"
    )]
    #[non_exhaustive]
    InvalidTicket {
        /// The lock's name.
        key: LockKey,
    },

    /// The manager has been shut down.
    #[error("the lock manager has been shut down and takes no new locks")]
    ShutDown,
}

impl LockError {
    /// The name of the lock, if the error is about one.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// let _other = locks.lock("order:7").acquire().await?;
    /// let refused = locks.lock("order:7").try_once().acquire().await.unwrap_err();
    /// assert!(refused.key().is_some_and(|key| key == "order:7"));
    /// # Ok(()) }
    /// ```
    pub fn key(&self) -> Option<&LockKey> {
        match self {
            Self::Contended { key, .. }
            | Self::Lost { key, .. }
            | Self::AlreadyHeld { key }
            | Self::InvalidTicket { key } => Some(key),
            _ => None,
        }
    }

    /// The kind of the error in one word, as in events and metrics: `contended`, `unavailable`, …
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// let _other = locks.lock("order:7").acquire().await?;
    /// let refused = locks.lock("order:7").try_once().acquire().await.unwrap_err();
    /// assert_eq!(refused.kind(), "contended");
    /// # Ok(()) }
    /// ```
    pub fn kind(&self) -> &'static str {
        match self {
            Self::NotConfigured => "not_configured",
            Self::AlreadyInstalled => "already_installed",
            Self::InvalidKey { .. } => "invalid_key",
            Self::InvalidOptions { .. } => "invalid_options",
            Self::Contended { .. } => "contended",
            Self::Unavailable { .. } => "unavailable",
            Self::Lost { .. } => "lost",
            Self::AlreadyHeld { .. } => "already_held",
            Self::InvalidTicket { .. } => "invalid_ticket",
            Self::ShutDown => "shut_down",
        }
    }

    pub(crate) fn invalid(setting: &'static str, reason: impl fmt::Display) -> Self {
        Self::InvalidOptions {
            setting,
            reason: reason.to_string().into_boxed_str(),
        }
    }

    pub(crate) fn unavailable_at(
        server: &Arc<str>,
        cause: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        Self::Unavailable {
            server: Arc::clone(server),
            cause: cause.into(),
        }
    }
}

/// Includes the message, since a program prints this if its `main` returns the error.
impl fmt::Debug for LockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::NotConfigured => "NotConfigured",
            Self::AlreadyInstalled => "AlreadyInstalled",
            Self::InvalidKey { .. } => "InvalidKey",
            Self::InvalidOptions { .. } => "InvalidOptions",
            Self::Contended { .. } => "Contended",
            Self::Unavailable { .. } => "Unavailable",
            Self::Lost { .. } => "Lost",
            Self::AlreadyHeld { .. } => "AlreadyHeld",
            Self::InvalidTicket { .. } => "InvalidTicket",
            Self::ShutDown => "ShutDown",
        };
        write!(f, "{name}: {self}")
    }
}

/// The reason why the lock cannot be taken.
fn closed(holder: Option<&Holder>) -> String {
    match holder {
        None => "is held by somebody else".to_owned(),
        Some(holder) if holder.cooling_down => {
            let left = holder.remaining.unwrap_or_default();
            format!("cools down for another {left:.1?} (`min_hold`) after its release by {holder}")
        }
        Some(holder) if holder.ticket => {
            let left = holder.remaining.unwrap_or_default();
            format!(
                "is closed for another {left:.1?} by a ticket of {holder}, unless that is adopted"
            )
        }
        Some(holder) => format!("is held by {holder}"),
    }
}

/// How the wait ended, and what to do now. A try does not wait.
fn refused(holder: Option<&Holder>, waited: Duration) -> String {
    const ADVICE: &str = "try again later, or wait longer with `wait`";
    match (holder, waited.as_millis()) {
        (Some(Holder { crowd, .. }), _) if crowd.is_full => format!(
            ", and {} wait for it, which `max_waiters` allows at most: try again later",
            crowd.waiting
        ),
        (_, 0) => format!(": {ADVICE}"),
        (_, ms) => format!(" and did not become free within {ms} ms: {ADVICE}"),
    }
}

impl From<Infallible> for LockError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_small_and_crosses_threads() {
        fn crosses<T: Send + Sync + 'static>() {}
        crosses::<LockError>();
        assert!(size_of::<LockError>() <= 48, "{}", size_of::<LockError>());
    }
}
