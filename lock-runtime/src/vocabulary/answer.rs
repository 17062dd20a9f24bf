//! Where the answer to a caller goes.

use tokio::sync::oneshot;

use super::error::LockError;

/// A caller awaits the other end.
pub(crate) type Answer<T> = oneshot::Sender<Result<T, LockError>>;
