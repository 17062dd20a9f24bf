//! The steps that tests take: connect, take a lock, wait for it, work under it, release it.

use std::time::Duration;

use lock_runtime::{Acquire, IntoKey, LockConfig, LockError, LockGuard, LockManager, LockRequest};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

use crate::{LONG, Pulse, RedisServer, TIME_LIMIT, eventually, poll_once, unique, within};

/// A manager of its own: what another process would be, so to speak.
pub async fn connect<C>(config: C) -> LockManager
where
    C: TryInto<LockConfig>,
    LockError: From<C::Error>,
{
    let connected = within(TIME_LIMIT, LockManager::connect(config)).await;
    connected.unwrap_or_else(|error| panic!("not connected: {error}"))
}

/// Takes a lock that is free, or soon will be.
pub async fn take(locks: &LockManager, key: &str, ttl: Duration) -> LockGuard {
    acquired(|| locks.lock(key).ttl(ttl).wait(TIME_LIMIT)).await
}

/// On a busy machine a server may not answer in time: the lock is asked for again then.
async fn acquired(request: impl Fn() -> LockRequest) -> LockGuard {
    let acquiring = async {
        loop {
            match request().acquire().await {
                Err(LockError::Unavailable { .. }) => {}
                outcome => break outcome.expect("the lock is free"),
            }
        }
    };
    within(TIME_LIMIT, acquiring).await
}

/// Takes a lock that is free now, and releases it; its fence.
pub async fn take_turn(locks: &LockManager, key: impl IntoKey) -> u64 {
    let key = key.into_key().expect("a key");
    let guard = acquired(|| locks.lock(key.clone()).wait(Duration::ZERO).ttl(LONG)).await;
    let fence = guard.fencing_token().get();
    release(guard).await;
    fence
}

/// Returns when what `locks` was asked before has reached the store: a manager with one connection keeps the order. With
/// Redlock, a try that was refused is in the servers' queues until then.
pub async fn settled(locks: &LockManager) {
    take_turn(locks, unique("settled")).await;
}

/// Begins to wait for a held lock, of any kind and on any store; returns when the waiter is in the queue.
pub async fn queued(locks: &LockManager, request: LockRequest) -> Acquire {
    let mut waiter = request.acquire();
    assert!(poll_once(&mut waiter).await.is_pending());
    settled(locks).await;
    // In a cluster, the two locks may belong to different nodes. A health check asks all of them.
    within(TIME_LIMIT, locks.health()).await;
    waiter
}

/// Begins to wait for a lock that is held on a server, in a task of its own; returns when so many wait.
pub async fn queue(
    server: &RedisServer,
    locks: &LockManager,
    key: &str,
    ttl: Duration,
    waiters: u64,
) -> JoinHandle<LockGuard> {
    let acquire = locks.lock(key).ttl(ttl).wait_forever().acquire();
    let waiter = tokio::spawn(async move { acquire.await.expect("an answer at last") });
    server.queued(key, waiters).await;
    waiter
}

/// Returns when so many wait for a lock, on any store.
pub async fn waits(locks: &LockManager, key: &str, count: usize) {
    let wait = async || locks.status(key).await.is_ok_and(|it| it.waiting == count);
    eventually(TIME_LIMIT, wait).await;
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
    let released = within(TIME_LIMIT, guard.release_confirmed()).await;
    assert!(released.expect("an answer"), "it was not ours any more");
}

/// So many callers who want a lock, however long that takes, and let go at once.
pub fn wanted(locks: &LockManager, key: &str, count: usize) -> JoinSet<Result<(), LockError>> {
    let turn = async |acquire: Acquire| {
        release(acquire.await?).await;
        Ok(())
    };
    let request = || locks.lock(key).ttl(LONG).wait_forever();
    (0..count).map(|_| turn(request().acquire())).collect()
}

/// Each of them gets it, in time.
pub async fn all_get_it(mut wanted: JoinSet<Result<(), LockError>>) {
    while let Some(turn) = within(TIME_LIMIT, wanted.join_next()).await {
        turn.expect("no panic").expect("the lock");
    }
}

/// All of them are told that the lock is not available, in time.
pub async fn unavailable_to_all(wanted: JoinSet<Result<(), LockError>>) {
    for turn in within(TIME_LIMIT / 2, wanted.join_all()).await {
        assert!(
            matches!(turn, Err(LockError::Unavailable { .. })),
            "{turn:?}"
        );
    }
}

/// Nothing of a lock is left on the server, in time.
pub async fn leaves_nothing(server: &RedisServer, key: &str, limit: Duration) {
    let nothing = async || server.traces(key).await.is_empty();
    eventually(limit, nothing).await;
}
