//! A caller that is no longer polled does not keep the lock that it was waiting for.
//!
//! Section: guarantees.md#the-lock-goes-on

use std::{pin::pin, time::Duration};

use lock_runtime::{Acquire, LockError, LockGuard, LockManager, LockRequest};
use tests::{
    LONG, RedisServer, TIME_LIMIT, connect, eventually, poll_once, queued, release, take, unique,
    within,
};

const TTL: Duration = Duration::from_millis(500);

#[tokio::test]
async fn the_lock_of_an_acquisition_that_is_not_polled_ends_in_memory() {
    let url = format!("memory:{}", unique("unpolled"));
    the_lock_goes_on(&connect(&*url).await, &connect(&*url).await).await;
}

#[tokio::test]
async fn the_lock_of_an_acquisition_that_is_not_polled_ends_on_redis() {
    let server = RedisServer::start().await;
    the_lock_goes_on(&connect(server.url()).await, &connect(server.url()).await).await;
}

/// A waiter that is not polled again, and whoever has got the lock after it.
async fn unpolled(
    others: &LockManager,
    locks: &LockManager,
    request: LockRequest,
) -> (Acquire, LockGuard) {
    let first = take(others, "key", LONG).await;
    let unpolled = queued(locks, request.ttl(TTL).wait_forever()).await;
    release(first).await;
    // Behind it in the queue, and in the same task.
    let next = others.lock("key").wait_forever();
    (unpolled, within(TIME_LIMIT, next.acquire()).await.unwrap())
}

/// As `select!` leaves an acquisition that it borrows while another branch runs.
async fn the_lock_goes_on(locks: &LockManager, others: &LockManager) {
    let (mut unpolled, next) = unpolled(others, locks, locks.lock("key")).await;
    let mut unpolled = pin!(&mut unpolled);
    assert!(
        poll_once(&mut unpolled).await.is_pending(),
        "the lock is held by the next one"
    );
    release(next).await;
    assert!(within(TIME_LIMIT, unpolled).await.unwrap().is_held());
}

/// It has waited in the queue, and does so again although others have filled it meanwhile.
#[tokio::test]
async fn a_caller_that_is_polled_late_stays_a_waiter() {
    let url = format!("memory:{}", unique("limited"));
    let (locks, others) = (connect(&*url).await, connect(&*url).await);
    let limited = locks.lock("key").max_waiters(1);
    let (mut unpolled, next) = unpolled(&others, &locks, limited).await;
    let last = queued(&others, others.lock("key").wait_forever()).await;

    let mut unpolled = pin!(&mut unpolled);
    assert!(poll_once(&mut unpolled).await.is_pending());
    release(next).await;
    release(within(TIME_LIMIT, last).await.unwrap()).await;
    assert!(within(TIME_LIMIT, unpolled).await.unwrap().is_held());
}

/// While the caller is polled, the keys that it has taken are its own for longer than their ttl.
#[tokio::test]
async fn the_first_of_several_locks_stays_while_the_caller_waits_for_the_next() {
    let url = format!("memory:{}", unique("several"));
    let (locks, others) = (connect(&*url).await, connect(&*url).await);
    let second = take(&others, "b", LONG).await;
    let both = locks.lock_all(["a", "b"]).ttl(2 * TTL).wait_forever();
    let both = tokio::spawn(both.acquire());
    eventually(TIME_LIMIT, async || {
        others.status("a").await.is_ok_and(|it| it.is_held())
    })
    .await;
    let refused = others.lock("a").wait(6 * TTL).acquire().await;
    assert!(
        matches!(refused, Err(LockError::Contended { .. })),
        "{refused:?}"
    );
    release(second).await;
    assert!(within(TIME_LIMIT, both).await.unwrap().unwrap().is_held());
}
