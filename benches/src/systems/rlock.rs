//! The crate `rlock`: retries every 100 ms.

use rlock::AcquireOptions;
use rlock::async_lock::{RLock, RLockGuard};

use super::locks::Locks;

/// A client with its default options, whose lease is 10 s too.
#[derive(Clone, Debug)]
pub(crate) struct Rlock(RLock);

impl Locks for Rlock {
    type Guard = RLockGuard;

    async fn connect(url: &str) -> Self {
        Self(RLock::new(url).await.expect("a server"))
    }

    async fn take(&self, key: &str) -> RLockGuard {
        let options = AcquireOptions::default();
        let guard = self.0.acquire_mutex_with_options(key, options).await;
        guard.expect("the lock")
    }

    async fn free(&self, mut guard: RLockGuard) {
        guard.release().await.expect("the release");
    }
}
