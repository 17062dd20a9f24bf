//! The crate `distributed-lock`: tries once; retried here every 100 ms, like the others.

use std::sync::Arc;
use std::time::Duration;

use distributed_lock_core::prelude::{DistributedLock as _, LockHandle as _, LockProvider as _};
use distributed_lock_redis::{RedisLockHandle, RedisLockProvider};
use tokio::time::sleep;

use super::locks::{Locks, TTL};

const RETRY_EVERY: Duration = Duration::from_millis(100);

/// A provider with one server.
#[derive(Clone)]
pub(crate) struct DistributedLock(Arc<RedisLockProvider>);

impl Locks for DistributedLock {
    type Guard = RedisLockHandle;

    async fn connect(url: &str) -> Self {
        let provider = RedisLockProvider::builder()
            .url(url)
            .expiry(TTL)
            .min_validity(TTL * 9 / 10)
            .extension_cadence(TTL / 3)
            .build();
        Self(Arc::new(provider.await.expect("a server")))
    }

    async fn take(&self, key: &str) -> RedisLockHandle {
        // A lock of this crate has one token for its whole life.
        let lock = self.0.create_lock(key);
        loop {
            if let Some(handle) = lock.try_acquire().await.expect("an answer") {
                return handle;
            }
            sleep(RETRY_EVERY).await;
        }
    }

    async fn free(&self, handle: RedisLockHandle) {
        handle.release().await.expect("the release");
    }
}
