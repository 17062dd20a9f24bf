//! The crate `async-redis-lock`: retries every 100 ms.

use async_redis_lock::{Lock, Locker, Options};

use super::locks::{Locks, TTL};

/// A client that waits forever; by default it gives up after a second.
#[derive(Clone)]
pub(crate) struct AsyncRedisLock(Locker);

impl Locks for AsyncRedisLock {
    type Guard = Lock;

    async fn connect(url: &str) -> Self {
        Self(Locker::from_redis_url(url).await.expect("a server"))
    }

    async fn take(&self, key: &str) -> Lock {
        let options = Options::new().timeout(None).ttl(TTL);
        let lock = self.0.acquire_with_options(&options, key).await;
        lock.expect("the lock")
    }

    async fn free(&self, lock: Lock) {
        lock.release().await.expect("the release");
    }
}
