//! The channel for the answer to a caller.

use tokio::sync::oneshot;

use super::error::LockError;

/// The caller awaits the other end.
pub(crate) type Answer<T> = oneshot::Sender<Result<T, LockError>>;
