//! Leases: they end at their ttl unless renewed, and the work under them with them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    task::Poll,
    time::{Duration, Instant},
};

use lock_runtime::{Clock, LockConfig, LockError};
use tests::{
    Store, TIME_LIMIT, connect, on_every_store, poll_once, queued, settled, take_turn, within,
};
use tokio::{
    sync::{Notify, oneshot},
    time::sleep,
};

on_every_store! {
    a_fixed_lease_ends_at_its_ttl,
    the_next_gets_a_lock_whose_lease_ended [fencing],
    a_body_is_dropped_when_its_lease_ends,
    a_renewed_lease_outlives_its_ttl,
    a_released_lease_is_over,
}

/// Short, but long enough to be renewed in time on a busy machine.
const TTL: Duration = Duration::from_secs(1);

async fn a_fixed_lease_ends_at_its_ttl(store: Store) {
    let locks = store.manager().await;
    let started = Instant::now();
    let request = locks.lock("key").ttl(TTL).renew(false);
    let guard = within(TIME_LIMIT, request.acquire()).await.unwrap();
    assert!(guard.is_held());
    assert!(guard.remaining() <= TTL);
    within(TIME_LIMIT, guard.lost()).await;
    let held = started.elapsed();
    assert!(held >= TTL / 4 * 3, "held for {held:?}");
    assert!(held < TTL + Duration::from_secs(2), "held for {held:?}");
    assert!(!guard.is_held());
    assert_eq!(guard.remaining(), Duration::ZERO);
    // Known to be over, it stays over.
    within(TIME_LIMIT, guard.lost()).await;
    assert!(!within(TIME_LIMIT, guard.release_confirmed()).await.unwrap());
}

// Section: guarantees.md#one-holder-at-a-time, guarantees.md#the-lock-goes-on
async fn the_next_gets_a_lock_whose_lease_ended(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let request = locks.lock("key").ttl(TTL).renew(false);
    let first = within(TIME_LIMIT, request.acquire()).await.unwrap();
    let next = queued(&others, others.lock("key").wait_forever()).await;
    let next = within(TIME_LIMIT, next).await.unwrap();
    assert!(!first.is_held(), "two holders");
    assert!(next.is_held());
    assert!(next.fencing_token() > first.fencing_token());

    // What the first one does now is none of the second one's business.
    assert!(!within(TIME_LIMIT, first.release_confirmed()).await.unwrap());
    let third = locks.lock("key").wait(Duration::ZERO).acquire();
    assert!(within(TIME_LIMIT, third).await.is_err());
    assert!(next.is_held());
}

// Section: guarantees.md#no-poll-of-the-body-starts-after-its-deadline
async fn a_body_is_dropped_when_its_lease_ends(store: Store) {
    let locks = store.manager().await;
    let request = locks.lock("key").ttl(TTL).renew(false);
    let guard = within(TIME_LIMIT, request.acquire()).await.unwrap();
    let (alive, mut dropped) = oneshot::channel::<()>();
    let body = async move {
        std::future::pending::<()>().await;
        drop(alive);
    };
    let error = within(TIME_LIMIT, guard.hold(body)).await.unwrap_err();
    assert!(
        dropped
            .try_recv()
            .is_err_and(|it| it == oneshot::error::TryRecvError::Closed)
    );
    assert!(!error.is_retryable());
    let LockError::Lost {
        key,
        fencing_token: fence,
        ..
    } = error
    else {
        panic!("{error}");
    };
    assert_eq!(key.as_str(), "key");
    assert_eq!(fence, guard.fencing_token());
}

async fn a_renewed_lease_outlives_its_ttl(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let guard = locks.lock("key").ttl(TTL).acquire().await.unwrap();
    let body = async {
        for _ in 0..7 {
            sleep(TTL / 2).await;
            let other = others.lock("key").wait(Duration::ZERO).acquire().await;
            assert!(other.is_err(), "two holders");
        }
        "done"
    };
    assert_eq!(within(TIME_LIMIT, guard.hold(body)).await.unwrap(), "done");
    assert!(guard.is_held());
    settled(&others).await;
    assert!(within(TIME_LIMIT, guard.release_confirmed()).await.unwrap());
    assert_eq!(store.traces().await, [""; 0]);
}

async fn a_released_lease_is_over(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let ttl = Duration::from_millis(150);
    for turn in 0..20 {
        let request = locks.lock("key").ttl(ttl).wait(TIME_LIMIT);
        let guard = within(TIME_LIMIT, request.acquire()).await.unwrap();
        // The release and the first renewal meet.
        sleep(Duration::from_millis(40 + turn)).await;
        guard.release();
    }
    settled(&locks).await;
    take_turn(&others, "key").await;
    assert_eq!(store.traces().await, [""; 0]);
}

// Section: guarantees.md#no-poll-of-the-body-starts-after-its-deadline
/// Time that stands still shows what a machine's clock only shows now and then.
#[tokio::test]
async fn no_poll_of_a_body_starts_after_its_deadline() {
    let clock = Clock::manual();
    let config = LockConfig::new("memory:").unwrap().clock(clock.clone());
    let locks = connect(config).await;
    let ttl = Duration::from_secs(10);
    let request = locks.lock("key").ttl(ttl).renew(false);
    let guard = within(TIME_LIMIT, request.acquire()).await.unwrap();

    let polls = Arc::new(AtomicU32::new(0));
    let wake = Arc::new(Notify::new());
    let body = {
        let (polls, wake) = (polls.clone(), wake.clone());
        async move {
            loop {
                polls.fetch_add(1, Ordering::SeqCst);
                wake.notified().await;
            }
        }
    };
    let mut hold = Box::pin(guard.hold(body));
    assert!(poll_once(&mut hold).await.is_pending());
    clock.advance(ttl / 2);
    wake.notify_one();
    assert!(poll_once(&mut hold).await.is_pending());
    assert_eq!(polls.load(Ordering::SeqCst), 2);

    // The body is ready to go on, but its time is over.
    wake.notify_one();
    clock.advance(ttl / 2);
    let outcome = poll_once(&mut hold).await;
    let Poll::Ready(Err::<(), _>(error)) = outcome else {
        panic!("the body may go on");
    };
    assert!(matches!(error, LockError::Lost { .. }), "{error}");
    assert_eq!(polls.load(Ordering::SeqCst), 2);
}
