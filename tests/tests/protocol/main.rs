//! Promise: whatever is late, lost, repeated or left behind, there is one holder at a time and the lock goes on.

mod crowds;
mod foreign;
mod grants;
mod late_commands;
mod replies;
mod short;

use std::time::Duration;

use lock_runtime::{LockGuard, LockManager};
use tests::{RedisServer, eventually, within};
use tokio::task::JoinHandle;

const SECOND: Duration = Duration::from_secs(1);
const SOON: Duration = Duration::from_secs(20);

/// Far longer than any test: what is free in time has not just expired.
const LONG: Duration = Duration::from_secs(60);

/// What was lost is found in this time; a grant that nobody claims lasts for 3 s.
const FOUND: Duration = Duration::from_secs(2);

async fn connect(url: &str) -> LockManager {
    LockManager::connect(url).await.expect("connected")
}

async fn take(locks: &LockManager, key: &str, ttl: Duration) -> LockGuard {
    let acquire = locks.lock(key).ttl(ttl).wait(SOON).acquire();
    within(SOON, acquire).await.expect("the lock is free")
}

/// Begins to wait for a held lock; returns when so many stand in line.
async fn queue(
    server: &RedisServer,
    locks: &LockManager,
    key: &str,
    ttl: Duration,
    place: u64,
) -> JoinHandle<LockGuard> {
    let acquire = locks.lock(key).ttl(ttl).wait_forever().acquire();
    let waiter = tokio::spawn(async move { acquire.await.expect("an answer at last") });
    eventually(SOON, async || server.waiting(key).await == place).await;
    waiter
}

async fn granted(limit: Duration, waiter: JoinHandle<LockGuard>) -> LockGuard {
    within(limit, waiter).await.expect("no panic")
}

async fn release(guard: LockGuard) {
    let released = within(SOON, guard.release_confirmed()).await;
    assert!(released.expect("an answer"), "it was not ours any more");
}

async fn leaves_nothing(server: &RedisServer, key: &str, limit: Duration) {
    let nothing = async || server.traces(key).await.is_empty();
    eventually(limit, nothing).await;
}
