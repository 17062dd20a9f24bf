//! This project's locks, with confirmed and with detached release, each granted alone, and for readers.

use std::time::Duration;

use lock_runtime::{LockGuard, LockManager};

use super::locks::Locks;

/// Waits for the server's answer to the release.
#[derive(Clone, Debug)]
pub(crate) struct Ours(LockManager);

impl Locks for Ours {
    type Guard = LockGuard;

    async fn connect(url: &str) -> Self {
        Self(LockManager::connect(url).await.expect("a server"))
    }

    async fn take(&self, key: &str) -> LockGuard {
        let request = self.0.lock(key).wait_forever();
        request.acquire().await.expect("the lock")
    }

    async fn free(&self, guard: LockGuard) {
        guard.release_confirmed().await.expect("an answer");
    }
}

/// Returns as soon as the release is on its way.
#[derive(Clone, Debug)]
pub(crate) struct Detached(Ours);

impl Locks for Detached {
    type Guard = LockGuard;

    async fn connect(url: &str) -> Self {
        Self(Ours::connect(url).await)
    }

    async fn take(&self, key: &str) -> LockGuard {
        self.0.take(key).await
    }

    async fn free(&self, guard: LockGuard) {
        guard.release();
    }
}

/// Passes no lock on within the process, as it was before there were chains.
#[derive(Clone, Debug)]
pub(crate) struct Alone(Ours);

impl Locks for Alone {
    type Guard = LockGuard;

    async fn connect(url: &str) -> Self {
        Self(Ours::connect(url).await)
    }

    async fn take(&self, key: &str) -> LockGuard {
        // A lock with `min_hold` is granted outside chains. This one never cools down: every body is longer.
        let request = self.0.0.lock(key).min_hold(Duration::from_nanos(1));
        request.wait_forever().acquire().await.expect("the lock")
    }

    async fn free(&self, guard: LockGuard) {
        self.0.free(guard).await;
    }
}

/// Shares each lock with other readers.
#[derive(Clone, Debug)]
pub(crate) struct Readers(Ours);

impl Locks for Readers {
    type Guard = LockGuard;

    async fn connect(url: &str) -> Self {
        Self(Ours::connect(url).await)
    }

    async fn take(&self, key: &str) -> LockGuard {
        let request = self.0.0.lock(key).read().wait_forever();
        request.acquire().await.expect("the lock")
    }

    async fn free(&self, guard: LockGuard) {
        self.0.free(guard).await;
    }
}
