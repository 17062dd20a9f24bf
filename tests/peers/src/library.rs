//! The libraries behind one interface, each set up as its documentation does.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_redis_lock::{Locker, Options};
use distributed_lock_core::prelude::{DistributedLock as _, LockHandle as _, LockProvider as _};
use distributed_lock_redis::{RedisLockHandle, RedisLockProvider};
use rlock::async_lock::{RLock, RLockGuard};
use rlock::{AcquireOptions, LeaseState};
use rslock::{LockGuard, LockManager};
use tokio::time::sleep;

/// Takes locks and waits for them without a limit. `None` and `false` stand for every error.
pub(crate) trait Library: Clone + Send + Sync + Sized + 'static {
    type Lock: Send;

    fn connect(url: &str, ttl: Duration) -> impl Future<Output = Option<Self>> + Send;

    fn take(&self, key: &str) -> impl Future<Output = Option<Self::Lock>> + Send;

    /// Whether another step of the work may follow. It extends the lock when that is due, if the library does not by itself.
    fn goes_on(&self, lock: &mut Self::Lock) -> impl Future<Output = bool> + Send;

    /// Whether the lock was held until now.
    fn free(&self, lock: Self::Lock) -> impl Future<Output = bool> + Send;
}

/// `rslock`: the caller extends its lock. It does not say whether a lock was held when it is released.
#[derive(Clone)]
pub(crate) struct Rslock {
    locks: LockManager,
    ttl: Duration,
}

impl Library for Rslock {
    type Lock = (LockGuard, Instant);

    async fn connect(url: &str, ttl: Duration) -> Option<Self> {
        let locks = LockManager::new(vec![url]);
        Some(Self { locks, ttl })
    }

    async fn take(&self, key: &str) -> Option<Self::Lock> {
        let guard = self.locks.acquire(key, self.ttl).await.ok()?;
        Some((guard, Instant::now()))
    }

    async fn goes_on(&self, (guard, extended): &mut Self::Lock) -> bool {
        if extended.elapsed() < self.ttl / 3 {
            return true;
        }
        *extended = Instant::now();
        self.locks.extend(&guard.lock, self.ttl).await.is_ok()
    }

    async fn free(&self, (guard, _): Self::Lock) -> bool {
        guard.release().await;
        true
    }
}

/// `rlock`: renews its locks.
#[derive(Clone)]
pub(crate) struct Rlock {
    locks: RLock,
    options: AcquireOptions,
}

impl Library for Rlock {
    type Lock = RLockGuard;

    async fn connect(url: &str, ttl: Duration) -> Option<Self> {
        Some(Self {
            locks: RLock::new(url).await.ok()?,
            options: AcquireOptions::builder().ttl(ttl).build().ok()?,
        })
    }

    async fn take(&self, key: &str) -> Option<RLockGuard> {
        let options = self.options.clone();
        let guard = self.locks.acquire_mutex_with_options(key, options).await;
        guard.ok()
    }

    async fn goes_on(&self, guard: &mut RLockGuard) -> bool {
        matches!(guard.lease_state(), LeaseState::Active)
    }

    async fn free(&self, mut guard: RLockGuard) -> bool {
        guard.release().await.is_ok()
    }
}

/// `async-redis-lock`: renews its locks.
#[derive(Clone)]
pub(crate) struct AsyncRedisLock {
    locker: Locker,
    ttl: Duration,
}

impl Library for AsyncRedisLock {
    type Lock = async_redis_lock::Lock;

    async fn connect(url: &str, ttl: Duration) -> Option<Self> {
        let locker = Locker::from_redis_url(url).await.ok()?;
        Some(Self { locker, ttl })
    }

    async fn take(&self, key: &str) -> Option<Self::Lock> {
        let options = Options::new().timeout(None).ttl(self.ttl);
        self.locker.acquire_with_options(&options, key).await.ok()
    }

    async fn goes_on(&self, lock: &mut Self::Lock) -> bool {
        !lock.is_lost()
    }

    async fn free(&self, lock: Self::Lock) -> bool {
        lock.release().await.is_ok()
    }
}

/// `distributed-lock`: tries once, and renews its locks.
#[derive(Clone)]
pub(crate) struct DistributedLock(Arc<RedisLockProvider>);

/// As long as the others pause before they try again.
const RETRY_EVERY: Duration = Duration::from_millis(100);

impl Library for DistributedLock {
    type Lock = RedisLockHandle;

    async fn connect(url: &str, ttl: Duration) -> Option<Self> {
        let provider = RedisLockProvider::builder()
            .url(url)
            .expiry(ttl)
            .min_validity(ttl * 9 / 10)
            .extension_cadence(ttl / 3)
            .build();
        Some(Self(Arc::new(provider.await.ok()?)))
    }

    async fn take(&self, key: &str) -> Option<RedisLockHandle> {
        // A lock of this crate has one token for its whole life.
        let lock = self.0.create_lock(key);
        loop {
            if let Some(handle) = lock.try_acquire().await.ok()? {
                return Some(handle);
            }
            sleep(RETRY_EVERY).await;
        }
    }

    async fn goes_on(&self, handle: &mut RedisLockHandle) -> bool {
        !*handle.lost_token().borrow()
    }

    async fn free(&self, handle: RedisLockHandle) -> bool {
        handle.release().await.is_ok()
    }
}
