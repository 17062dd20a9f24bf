//! A caller that is polled long after its lock was granted gets no lock that it has lost meanwhile.
//!
//! Section: guarantees.md#the-body-does-not-begin-without-the-lock

use std::{future::Future, pin::pin, time::Duration};

use lock_runtime::{Clock, LockConfig, LockError, LockManager, distributed_lock};
use tests::{
    LONG, RedisServer, TIME_LIMIT, connect, poll_once, queued, release, settled, take, unique,
    within,
};

#[tokio::test]
async fn the_caller_waits_for_the_lock_again() {
    let url = format!("memory:{}", unique("late"));
    let [locks, others] = [connect(&*url).await, connect(&*url).await];
    let first = take(&others, "key", LONG).await;
    let mut waiter = queued(&locks, locks.lock("key").ttl(LONG).wait_forever()).await;
    release(first).await;
    settled(&locks).await;
    assert_eq!(others.force_release("key").await.unwrap(), 1);
    settled(&locks).await;
    let next = take(&others, "key", LONG).await;
    assert!(poll_once(&mut waiter).await.is_pending());
    release(next).await;
    let guard = within(TIME_LIMIT, waiter).await.unwrap();
    assert!(guard.is_held());
}

const TTL: Duration = Duration::from_secs(10);
/// Longer than a ttl and a wait.
const LATE: Duration = Duration::from_secs(61);

/// Whose body would run to its end.
#[distributed_lock(key = "key", ttl = "10s", wait = "60s", on_lost = "notify", guard = lock)]
async fn patient() -> Result<(), LockError> {
    assert!(lock.is_held(), "the body began without its lock");
    Ok(())
}

#[distributed_lock(key = "key", ttl = "10s", wait = "0s", min_hold = "1h")]
async fn nightly() -> Result<(), LockError> {
    Ok(())
}

async fn on_a_clock() -> (RedisServer, LockManager, Clock) {
    let server = RedisServer::start().await;
    let clock = Clock::manual();
    let config = LockConfig::new(server.url()).unwrap();
    let locks = connect(config.clock(clock.clone())).await;
    (server, locks, clock)
}

/// Polls it once, and lets it be granted the lock while the process stands still.
async fn granted_late<F: Future + Unpin>(
    call: &mut F,
    (server, locks, clock): &(RedisServer, LockManager, Clock),
) {
    // Its answer does not come within the poll.
    server.stop();
    assert!(poll_once(call).await.is_pending());
    server.resume();
    stand_still(locks, clock).await;
}

/// The caller is polled before the manager has noticed anything.
async fn stand_still(locks: &LockManager, clock: &Clock) {
    settled(locks).await;
    clock.advance(LATE);
}

#[tokio::test]
async fn the_wait_is_over_for_whoever_is_polled_after_it() {
    let (_server, locks, clock) = on_a_clock().await;
    let first = take(&locks, "key", TTL).await;
    let mut call = pin!(locks.scope(patient()));
    assert!(poll_once(&mut call).await.is_pending());
    release(first).await;
    stand_still(&locks, &clock).await;
    let _next = take(&locks, "key", TTL).await;
    let outcome = within(TIME_LIMIT, call).await;
    let Err(LockError::Contended { waited, holder, .. }) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(waited, LATE);
    assert!(holder.is_some());
}

#[tokio::test]
async fn a_lock_that_is_free_after_the_wait_is_taken() {
    let (_server, locks, clock) = on_a_clock().await;
    let first = take(&locks, "key", TTL).await;
    let mut call = pin!(locks.scope(patient()));
    assert!(poll_once(&mut call).await.is_pending());
    release(first).await;
    stand_still(&locks, &clock).await;
    within(TIME_LIMIT, call).await.unwrap();
}

#[tokio::test]
async fn a_try_is_made_once_more() {
    let scene = on_a_clock().await;
    let mut call = pin!(scene.1.scope(nightly()));
    granted_late(&mut call, &scene).await;
    within(TIME_LIMIT, call).await.unwrap();
}

#[tokio::test]
async fn somebody_who_is_late_again_and_again_gives_up() {
    let scene = on_a_clock().await;
    let mut call = pin!(scene.1.scope(nightly()));
    for _ in 0..2 {
        granted_late(&mut call, &scene).await;
    }
    let outcome = within(TIME_LIMIT, call).await;
    let Err(LockError::Contended { waited, .. }) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(waited, 2 * LATE);
}

#[tokio::test]
async fn a_late_adopter_has_no_ticket_any_more() {
    let scene = on_a_clock().await;
    let guard = take(&scene.1, "key", TTL).await;
    let ticket = guard.into_ticket(TTL).await.unwrap();
    let mut adoption = pin!(scene.1.adopt(&ticket).ttl(TTL).acquire());
    granted_late(&mut adoption, &scene).await;
    let outcome = within(TIME_LIMIT, adoption).await;
    let Err(LockError::InvalidTicket { key, .. }) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(key, "key");
}
