//! What the holder of a lock has in its hands.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::error::LockError;
use crate::hold::{Hold, HoldUnstopped};
use crate::key::LockKey;
use crate::lease::Lease;

/// A number that is larger for every later acquisition of the same lock.
///
/// Send it along with every write; a database that rejects numbers lower than
/// the highest it has seen accepts no write of a holder that was overtaken.
/// See Martin Kleppmann, *How to do distributed locking* (2016).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FencingToken(u64);

impl FencingToken {
    pub(crate) fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number itself; it fits a signed 64-bit column.
    pub fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<FencingToken> for u64 {
    fn from(token: FencingToken) -> Self {
        token.0
    }
}

/// A lock that is held, and renewed in the background, until this is dropped or
/// released.
///
/// May be dropped anywhere: on another thread, outside every runtime, while
/// unwinding. The release then happens in the background.
#[must_use = "the lock is released as soon as its guard is dropped"]
#[derive(Debug)]
pub struct LockGuard {
    lease: Arc<Lease>,
    /// Whether somebody else lets go of the lock.
    joined: bool,
}

impl LockGuard {
    pub(crate) fn new(lease: Arc<Lease>) -> Self {
        let joined = false;
        Self { lease, joined }
    }

    /// Another guard for a lease that is held and let go by somebody else.
    pub(crate) fn joined(lease: &Arc<Lease>) -> Self {
        let (lease, joined) = (Arc::clone(lease), true);
        Self { lease, joined }
    }

    /// The caller gets it now.
    pub(crate) fn arrive(self) -> Self {
        self.lease.all().for_each(Lease::arrive);
        self
    }

    /// One guard for what both hold; `under` was taken before.
    pub(crate) fn on_top_of(self, under: Option<Self>) -> Self {
        if let Some(mut under) = under {
            under.joined = true;
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
        self.lease.all().map(|lease| &lease.terms.key)
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

    /// Whether the lock is surely ours at this moment.
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
    /// guard, or at [`current`](crate::current()), to learn whether it still has it.
    pub fn hold_unstopped<F: Future>(&self, body: F) -> HoldUnstopped<'_, F> {
        HoldUnstopped::new(&self.lease, body)
    }

    /// Hands the release to the driver and returns at once.
    pub fn release(self) {
        if !self.joined {
            self.lease.all().for_each(Lease::release);
        }
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
        let answers: Vec<_> = if self.joined {
            Vec::new()
        } else {
            self.lease.all().map(Lease::release_confirmed).collect()
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

impl Drop for LockGuard {
    fn drop(&mut self) {
        if !self.joined {
            self.lease.all().for_each(Lease::drop_release);
        }
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
