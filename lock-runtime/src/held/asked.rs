//! The future by which a holder learns that somebody would like to have its lock.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::held::current;
use crate::held::lease::Lease;

/// The future of [`LockGuard::asked`](crate::LockGuard::asked) and of [`asked`].
#[must_use = "futures do nothing unless polled"]
pub struct Asked<'g> {
    /// Without one, that under which it is polled.
    lease: Option<Arc<Lease>>,
    slot: Option<u64>,
    guard: PhantomData<&'g Lease>,
}

impl Asked<'_> {
    pub(super) fn of(lease: &Arc<Lease>) -> Self {
        Self {
            lease: Some(Arc::clone(lease)),
            slot: None,
            guard: PhantomData,
        }
    }
}

/// Resolves when somebody would like to have the lock under which this is first polled, the
/// innermost of several: a body finishes its step, and returns early.
///
/// It is [`LockGuard::asked`](crate::LockGuard::asked) without a guard at hand. Outside [`hold`](crate::LockGuard::hold), annotated
/// functions and [`run`](crate::LockRequest::run), it never resolves.
///
/// ```
/// use lock_runtime::{LockError, distributed_lock};
///
/// #[distributed_lock(key = "indexer", wait = "forever")]
/// async fn index(pages: &[&str]) -> Result<usize, LockError> {
///     let asked = lock_runtime::asked();
///     tokio::pin!(asked);
///     for (done, page) in pages.iter().enumerate() {
///         tokio::select! {
///             biased;
///             () = &mut asked => return Ok(done), // another process goes on from here
///             () = write(page) => {}
///         }
///     }
///     Ok(pages.len())
/// }
/// # async fn write(_page: &str) {}
/// ```
pub fn asked() -> Asked<'static> {
    Asked {
        lease: None,
        slot: None,
        guard: PhantomData,
    }
}

impl Future for Asked<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        if this.lease.is_none() {
            this.lease = current::innermost();
        }
        let Some(lease) = &this.lease else {
            return Poll::Pending;
        };
        lease.watch_for_asks(&mut this.slot, cx.waker());
        // Checked after the waker is known, so that a request in between wakes it.
        if lease.is_asked() || !lease.is_held() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}

impl fmt::Debug for Asked<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.lease {
            Some(lease) => lease.describe(f, "Asked"),
            None => f.write_str("Asked"),
        }
    }
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        if let Some(lease) = &self.lease {
            lease.unwatch(self.slot);
        }
    }
}
