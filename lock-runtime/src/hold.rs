//! Runs a body only while its lease is surely ours.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use crate::current;
use crate::error::LockError;
use crate::guard::FencingToken;
use crate::lease::Lease;
use crate::observe;

pin_project! {
    /// The future of [`LockGuard::hold`](crate::LockGuard::hold).
    ///
    /// Looks at the lease clock before every poll of the body: a timer cannot
    /// do, since after a pause of the process the body may be polled before the
    /// timer is. The driver wakes it when the lease ends.
    #[must_use = "futures do nothing unless polled"]
    pub struct Hold<'g, F> {
        lease: &'g Arc<Lease>,
        watch: Watch<'g>,
        #[pin]
        body: Option<F>,
    }
}

/// Takes the waker back when the future is dropped.
struct Watch<'g> {
    lease: &'g Lease,
    slot: Option<usize>,
}

impl<'g, F: Future> Hold<'g, F> {
    pub(crate) fn new(lease: &'g Arc<Lease>, body: F) -> Self {
        Self {
            lease,
            watch: Watch { lease, slot: None },
            body: Some(body),
        }
    }
}

impl<F: Future> Future for Hold<'_, F> {
    type Output = Result<F::Output, LockError>;

    /// # Panics
    ///
    /// Where it is polled again after it has returned, as async functions do.
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if !this.lease.is_held() {
            this.body.set(None);
            observe::stopped(this.lease);
            return Poll::Ready(Err(LockError::Lost {
                key: this.lease.terms.key.clone(),
                fence: FencingToken::new(this.lease.fence),
            }));
        }
        let body = this.body.as_mut().as_pin_mut();
        let body = body.expect("a future is not polled after it has returned");
        let entered = current::enter(this.lease);
        let polled = body.poll(cx);
        drop(entered);
        if let Poll::Ready(output) = polled {
            this.body.set(None);
            if !this.lease.is_held() {
                observe::overran(this.lease);
            }
            return Poll::Ready(Ok(output));
        }
        this.watch.lease.watch(&mut this.watch.slot, cx.waker());
        if !this.lease.is_held() {
            // It ended before the waker was known.
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.lease.unwatch(self.slot);
    }
}

impl<F> fmt::Debug for Hold<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hold")
            .field("lease", &self.lease)
            .field("finished", &self.body.is_none())
            .finish()
    }
}
