//! What every system can do: acquire and release a lock.

use std::future::Future;
use std::time::Duration;

/// The lease of every lock here, except where a case is about leases.
pub(crate) const TTL: Duration = Duration::from_secs(10);

/// A client that takes locks and waits without a limit; it panics when it cannot go on.
///
/// Peers are set up as their documentation does, with their own retry intervals.
pub(crate) trait Locks: Clone + Send + Sync + 'static {
    /// A held lock.
    type Guard: Send;

    /// Connects to the server.
    fn connect(url: &str) -> impl Future<Output = Self> + Send;

    /// Takes the lock of this name.
    fn take(&self, key: &str) -> impl Future<Output = Self::Guard> + Send;

    /// Releases it; returns once the server has confirmed that, unless noted otherwise.
    fn free(&self, guard: Self::Guard) -> impl Future<Output = ()> + Send;
}
