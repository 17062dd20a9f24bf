//! The crate `rslock`: retries after up to 200 ms, and does not renew.

use rslock::{LockGuard, LockManager};

use super::locks::{Locks, TTL};

/// A manager with one server, or with several that commas separate.
#[derive(Clone, Debug)]
pub(crate) struct Rslock(LockManager);

impl Locks for Rslock {
    type Guard = LockGuard;

    async fn connect(url: &str) -> Self {
        Self(LockManager::new(url.split(',').collect()))
    }

    async fn take(&self, key: &str) -> LockGuard {
        self.0.acquire(key, TTL).await.expect("the lock")
    }

    async fn free(&self, guard: LockGuard) {
        guard.release().await;
    }
}
