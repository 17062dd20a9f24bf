//! The channels for answers to callers.

use tokio::sync::oneshot;

use super::error::{Cause, LockError};

/// The caller awaits the other end.
pub(crate) type Answer<T> = oneshot::Sender<Result<T, LockError>>;

/// The same for a store, which does not name the server. Dropping it means that the driver has
/// ended.
pub(crate) type Reply<T> = oneshot::Sender<Result<T, Cause>>;
