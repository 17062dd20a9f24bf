//! A caller that is polled long after its lock was granted gets no lock that it has lost meanwhile.
//!
//! Section: guarantees.md#the-body-does-not-begin-without-the-lock

use std::{pin::pin, time::Duration};

use lock_runtime::{Clock, LockConfig, LockError, distributed_lock};
use tests::{LONG, TIME_LIMIT, connect, poll_once, queued, release, settled, take, unique, within};

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

/// Whose body would run to its end.
#[distributed_lock(key = "key", ttl = "10s", wait = "60s", on_lost = "notify")]
async fn patient() -> Result<(), LockError> {
    panic!("the body began without its lock");
}

#[tokio::test]
async fn the_wait_is_over_for_whoever_is_polled_after_it() {
    let clock = Clock::manual();
    let config = LockConfig::new("memory:").unwrap();
    let locks = connect(config.clock(clock.clone())).await;
    let first = take(&locks, "key", TTL).await;
    let mut call = pin!(locks.scope(patient()));
    assert!(poll_once(&mut call).await.is_pending());
    release(first).await;
    settled(&locks).await;
    // The process stands still.
    clock.advance(Duration::from_secs(61));
    let outcome = within(TIME_LIMIT, call).await;
    let Err(LockError::Contended { waited, .. }) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(waited, Duration::from_secs(61));
}
