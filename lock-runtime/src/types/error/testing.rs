//! Constructors of errors, for tests of programs that handle them.

use std::time::Duration;

use super::LockError;
use crate::types::fence::FencingToken;
use crate::types::holder::Holder;
use crate::types::into_key::IntoKey;
use crate::types::key::LockKey;

/// With the feature `testing`. [`NotConfigured`](Self::NotConfigured),
/// [`AlreadyInstalled`](Self::AlreadyInstalled) and [`ShutDown`](Self::ShutDown) need no help.
impl LockError {
    /// `key` stayed held for five seconds, by a function `holder` in process 1 on the
    /// host `host`, whose lease has three seconds left.
    ///
    /// # Panics
    ///
    /// If `key` cannot be a name.
    ///
    /// ```
    /// use lock_runtime::LockError;
    ///
    /// # fn main() -> Result<(), lock_runtime::LockError> {
    /// let error = LockError::contended("order:7");
    /// assert!(error.is_retryable() && error.key().is_some());
    /// # Ok(()) }
    /// ```
    pub fn contended(key: impl IntoKey) -> Self {
        let holder = Holder {
            process: Some(1),
            host: Some("host".into()),
            function: Some("holder".into()),
            ..Holder::unknown("0", Some(Duration::from_secs(3)))
        };
        Self::Contended {
            key: named(key),
            waited: Duration::from_secs(5),
            holder: Some(Box::new(holder)),
        }
    }

    /// A server named `server` cannot serve, for this reason.
    ///
    /// ```
    /// use lock_runtime::LockError;
    ///
    /// # fn main() -> Result<(), lock_runtime::LockError> {
    /// let error = LockError::unavailable("refused");
    /// assert_eq!((error.kind(), error.key()), ("unavailable", None));
    /// # Ok(()) }
    /// ```
    pub fn unavailable(reason: impl Into<String>) -> Self {
        Self::unavailable_at(&"server".into(), reason.into())
    }

    /// The lease of `key` ended while the work was running.
    ///
    /// # Panics
    ///
    /// If `key` cannot be a name.
    ///
    /// ```
    /// use lock_runtime::LockError;
    ///
    /// # fn main() -> Result<(), lock_runtime::LockError> {
    /// let error = LockError::lost("order:7");
    /// assert!(!error.is_retryable()); // the work has begun
    /// # Ok(()) }
    /// ```
    pub fn lost(key: impl IntoKey) -> Self {
        Self::Lost {
            key: named(key),
            fencing_token: FencingToken::new(1),
        }
    }

    /// The caller already runs under `key`.
    ///
    /// # Panics
    ///
    /// If `key` cannot be a name.
    pub fn already_held(key: impl IntoKey) -> Self {
        Self::AlreadyHeld { key: named(key) }
    }

    /// The ticket for `key` was adopted before, or has expired.
    ///
    /// # Panics
    ///
    /// If `key` cannot be a name.
    pub fn invalid_ticket(key: impl IntoKey) -> Self {
        Self::InvalidTicket { key: named(key) }
    }

    /// The name of the lock is invalid.
    pub fn invalid_key(reason: &'static str) -> Self {
        Self::InvalidKey { reason }
    }

    /// A setting is out of range.
    pub fn invalid_options(setting: &'static str, reason: impl Into<String>) -> Self {
        Self::invalid(setting, reason.into())
    }
}

fn named(key: impl IntoKey) -> LockKey {
    key.into_key().expect("the name of a lock")
}
