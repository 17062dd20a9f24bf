//! What the holder of a lock has in its hands.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::held::current;
use crate::held::hold::{Hold, HoldUnstopped};
use crate::held::lease::Lease;
use crate::vocabulary::error::LockError;
use crate::vocabulary::fence::FencingToken;
use crate::vocabulary::key::LockKey;

/// A lock that is held, and renewed in the background, until this is dropped or
/// released.
///
/// May be dropped anywhere: on another thread, outside every runtime, while
/// unwinding. The release then happens in the background.
#[must_use = "the lock is released as soon as its guard is dropped"]
#[derive(Debug)]
pub struct LockGuard {
    lease: Arc<Lease>,
    /// How many of the lease and those under it this lets go of.
    owned: usize,
}

impl LockGuard {
    pub(crate) fn new(lease: Arc<Lease>) -> Self {
        let owned = usize::MAX;
        Self { lease, owned }
    }

    /// Another guard for a lease that is held and let go by somebody else.
    pub(crate) fn joined(lease: Arc<Lease>) -> Self {
        let owned = 0;
        Self { lease, owned }
    }

    /// The same with a limit on top of that lease, which this guard lets go of.
    pub(crate) fn limited(limit: Arc<Lease>) -> Self {
        let owned = 1;
        Self {
            lease: limit,
            owned,
        }
    }

    pub(crate) fn lease(&self) -> &Lease {
        &self.lease
    }

    /// What this lets go of.
    fn owned(&self) -> impl Iterator<Item = &Lease> {
        self.lease.all().take(self.owned)
    }

    /// The caller gets it now.
    pub(crate) fn arrive(self) -> Self {
        self.lease.all().for_each(Lease::arrive);
        self
    }

    /// One guard for what both hold; `under` was taken before.
    pub(crate) fn on_top_of(self, under: Option<Self>) -> Self {
        if let Some(mut under) = under {
            under.owned = 0;
            self.lease.put_on(&under.lease);
        }
        self
    }

    /// The lock's name; of several the last one in order.
    pub fn key(&self) -> &LockKey {
        &self.lease.terms.key
    }

    /// The names of everything that is held, the last one in order first.
    pub fn keys(&self) -> impl Iterator<Item = &LockKey> {
        self.lease.keys()
    }

    /// The token that fences this acquisition; of several keys it is the one of
    /// the last, and larger than all that were given out for any of them before.
    pub fn fencing_token(&self) -> FencingToken {
        FencingToken::new(self.lease.fence)
    }

    /// How long the lock is surely ours if no further renewal succeeds.
    pub fn remaining(&self) -> Duration {
        self.lease.remaining()
    }

    /// Whether the lock is surely ours at this moment. A guard that has joined says
    /// so of the lock that it has joined: no longer when the guard that took it has
    /// let go, or when a limit of its own has passed.
    pub fn is_held(&self) -> bool {
        self.lease.is_held()
    }

    /// Resolves when the lock is no longer surely ours.
    pub fn lost(&self) -> Lost<'_> {
        Lost {
            lease: &self.lease,
            slot: None,
        }
    }

    /// Runs `body` for as long as the lock is surely ours.
    ///
    /// # Errors
    ///
    /// [`LockError::Lost`] where the lease ended first; the body has been
    /// dropped then, at one of its await points.
    pub fn hold<F: Future>(&self, body: F) -> Hold<'_, F> {
        Hold::new(&self.lease, body)
    }

    /// Runs `body` to its end whatever becomes of the lock; the body looks at its
    /// guard, or at [`current`](crate::held::current()), to learn whether it still has it.
    pub fn hold_unstopped<F: Future>(&self, body: F) -> HoldUnstopped<'_, F> {
        HoldUnstopped::new(&self.lease, body)
    }

    /// Hands the release to the driver and returns at once.
    pub fn release(self) {
        self.owned().for_each(Lease::release);
    }

    /// Releases and waits for the server's answer: `true` where the lock was
    /// still ours; `false` also where a release whose answer was lost has been
    /// done. Dropping the future does not take the release back. A guard that has
    /// joined releases nothing, and says whether the lock is held.
    ///
    /// # Errors
    ///
    /// [`LockError::Unavailable`] where the server did not answer before the
    /// lease ended by itself, and at once where it answers that it will not, as
    /// for want of a right. The release is sent again all the same until the
    /// lease would have ended; [`shutdown`](crate::LockManager::shutdown) does
    /// not wait for that.
    pub fn release_confirmed(self) -> impl Future<Output = Result<bool, LockError>> + Send {
        let held = self.is_held();
        let answers: Vec<_> = if self.owned < usize::MAX {
            Vec::new()
        } else {
            self.owned().map(Lease::release_confirmed).collect()
        };
        drop(self);
        async move {
            let mut held = held || !answers.is_empty();
            for answer in answers {
                held &= answer.await.unwrap_or(Err(LockError::ShutDown))?;
            }
            Ok(held)
        }
    }
}

/// The lock under which the code runs that is being polled, the innermost of
/// several: what a function deep below a locked one needs to send the fencing
/// token along.
///
/// It is another guard for the same lease: dropping or releasing it lets go of
/// nothing. `None` outside [`hold`](LockGuard::hold), annotated functions and
/// [`run`](crate::LockRequest::run), and in tasks that were spawned from there,
/// unless the body itself polls them, as a local executor inside it does.
pub fn current() -> Option<LockGuard> {
    current::innermost().map(LockGuard::joined)
}

impl Drop for LockGuard {
    fn drop(&mut self) {
        self.owned().for_each(Lease::drop_release);
    }
}

/// The future of [`LockGuard::lost`].
#[must_use = "futures do nothing unless polled"]
#[derive(Debug)]
pub struct Lost<'g> {
    lease: &'g Lease,
    slot: Option<u64>,
}

impl Future for Lost<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        this.lease.watch(&mut this.slot, cx.waker());
        // Looked at after the waker is known, so that an end in between wakes.
        if this.lease.is_held() {
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    }
}

impl Drop for Lost<'_> {
    fn drop(&mut self) {
        self.lease.unwatch(self.slot);
    }
}
