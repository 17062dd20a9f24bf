//! The steps that many tests take: connect, take a lock, wait in its line, work under it, release it.

use std::time::Duration;

use lock_runtime::{LockError, LockGuard, LockManager};
use tokio::{task::JoinHandle, time::timeout};

use crate::{Pulse, RedisServer, eventually, within};

/// What takes as long hangs.
const PATIENCE: Duration = Duration::from_secs(20);

/// A manager of its own: what another process would be, so to speak.
pub async fn connect(url: impl AsRef<str>) -> LockManager {
    LockManager::connect(url.as_ref()).await.expect("connected")
}

/// Takes a lock that is free, or soon will be.
pub async fn take(locks: &LockManager, key: &str, ttl: Duration) -> LockGuard {
    let acquire = locks.lock(key).ttl(ttl).wait(PATIENCE).acquire();
    within(PATIENCE, acquire).await.expect("the lock is free")
}

/// Begins to wait for a held lock; returns when so many stand in line.
pub async fn queue(
    server: &RedisServer,
    locks: &LockManager,
    key: &str,
    ttl: Duration,
    place: u64,
) -> JoinHandle<LockGuard> {
    let acquire = locks.lock(key).ttl(ttl).wait_forever().acquire();
    let waiter = tokio::spawn(async move { acquire.await.expect("an answer at last") });
    server.in_line(key, place).await;
    waiter
}

/// The waiter's turn has come.
pub async fn granted(limit: Duration, waiter: JoinHandle<LockGuard>) -> LockGuard {
    let guard = within(limit, waiter).await.expect("no panic");
    assert!(guard.is_held());
    guard
}

/// Runs a body under the lock for so long, and releases it.
pub fn work(guard: LockGuard, pulse: &Pulse, time: Duration) -> JoinHandle<Result<(), LockError>> {
    let pulse = pulse.clone();
    tokio::spawn(async move {
        let body = timeout(time, pulse.beat(&guard));
        guard.hold(body).await.map(|_| ())
    })
}

/// Releases a lock that is still ours.
pub async fn release(guard: LockGuard) {
    let released = within(PATIENCE, guard.release_confirmed()).await;
    assert!(released.expect("an answer"), "it was not ours any more");
}

/// Nothing of a lock is left on the server, in time.
pub async fn leaves_nothing(server: &RedisServer, key: &str, limit: Duration) {
    let nothing = async || server.traces(key).await.is_empty();
    eventually(limit, nothing).await;
}
