//! Promise: where as many wait as may, the next one is refused at once, and leaves nothing behind.
//!
//! Section: guarantees.md#a-queue-of-limited-length
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

mod in_the_attribute;
mod on_servers;

use std::time::Duration;

use lock_runtime::{Acquire, LockError, LockManager, LockRequest};
use tests::{
    LONG, RedlockFleet, SetnxServer, Store, TIME_LIMIT, connect, eventually, on_every_store,
    poll_once, release, take, take_turn, waits, within,
};
use tokio::task::JoinSet;

on_every_store! {
    who_would_be_later_than_the_last_is_refused [max_waiters],
    of_many_who_come_at_once_as_many_wait_as_may [max_waiters],
    those_behind_a_waiter_that_was_served_still_count [max_waiters],
    those_who_share_a_lock_do_not_count [max_waiters read permits],
    the_configuration_limits_whoever_waits [max_waiters],
    of_several_keys_each_queue_is_limited [max_waiters several_keys],
}

/// Waits for as long as it takes, unless so many others do.
fn request(locks: &LockManager, most: u32) -> LockRequest {
    locks.lock("key").ttl(LONG).wait_forever().max_waiters(most)
}

/// Joins the queue, in which so many wait then.
async fn joins(locks: &LockManager, request: LockRequest, count: usize) -> Acquire {
    let mut waiter = request.acquire();
    assert!(poll_once(&mut waiter).await.is_pending());
    waits(locks, "key", count).await;
    assert!(poll_once(&mut waiter).await.is_pending(), "it waits");
    waiter
}

async fn refused(request: LockRequest) -> LockError {
    let refused = within(TIME_LIMIT, request.acquire()).await.unwrap_err();
    let contended = matches!(refused, LockError::Contended { .. });
    assert!(contended, "{refused}");
    refused
}

/// Nothing of the lock is left in the store, in time.
async fn leaves_nothing(store: &Store) {
    eventually(TIME_LIMIT, async || store.traces().await.is_empty()).await;
}

async fn who_would_be_later_than_the_last_is_refused(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let guard = take(&locks, "key", LONG).await;
    let first = joins(&locks, request(&locks, 2), 1).await;
    let second = joins(&locks, request(&others, 2), 2).await;
    for locks in [&locks, &others] {
        let error = refused(request(locks, 2)).await;
        let text = error.to_string();
        assert!(text.contains("2 wait for it"), "{text}");
        assert!(text.contains("`max_waiters`"), "{text}");
        let pause = error.retry_after().expect("a retry may succeed");
        assert!(pause > Duration::ZERO && pause <= Duration::from_secs(1));
    }
    // Everybody counts, whatever limit is their own.
    let patient = others.lock("key").ttl(LONG).wait_forever();
    let third = joins(&locks, patient, 3).await;
    let text = refused(request(&locks, 3)).await.to_string();
    assert!(text.contains("3 wait for it"), "{text}");
    drop(second);
    waits(&locks, "key", 2).await;
    refused(request(&locks, 2)).await;
    drop(third);
    waits(&locks, "key", 1).await;
    let second = joins(&locks, request(&others, 2), 2).await;
    release(guard).await;
    for waiter in [first, second] {
        release(within(TIME_LIMIT, waiter).await.unwrap()).await;
    }
    release(
        within(TIME_LIMIT, request(&locks, 1).acquire())
            .await
            .unwrap(),
    )
    .await;
    leaves_nothing(&store).await;
}

async fn of_many_who_come_at_once_as_many_wait_as_may(store: Store) {
    const MOST: u32 = 3;
    const ALL: u32 = 20;
    let managers = [store.manager().await, store.manager().await];
    let guard = take(&managers[0], "key", LONG).await;
    let mut acquiring = JoinSet::new();
    for number in 0..ALL {
        let request = request(&managers[usize::from(number % 2 == 0)], MOST);
        acquiring.spawn(request.acquire());
    }
    for _ in MOST..ALL {
        let refused = within(TIME_LIMIT, acquiring.join_next()).await.unwrap();
        let refused = refused.unwrap().unwrap_err();
        assert!(matches!(refused, LockError::Contended { .. }), "{refused}");
    }
    waits(&managers[0], "key", 3).await;
    release(guard).await;
    while let Some(granted) = within(TIME_LIMIT, acquiring.join_next()).await {
        release(granted.unwrap().unwrap()).await;
    }
    leaves_nothing(&store).await;
}

async fn those_behind_a_waiter_that_was_served_still_count(store: Store) {
    let locks = store.manager().await;
    let guard = take(&locks, "key", LONG).await;
    let first = joins(&locks, request(&locks, 3), 1).await;
    let second = joins(&locks, request(&locks, 3), 2).await;
    let third = joins(&locks, request(&locks, 3), 3).await;
    release(guard).await;
    let guard = within(TIME_LIMIT, first).await.unwrap();
    waits(&locks, "key", 2).await;
    refused(request(&locks, 2)).await;
    release(guard).await;
    for waiter in [second, third] {
        release(within(TIME_LIMIT, waiter).await.unwrap()).await;
    }
    leaves_nothing(&store).await;
}

async fn those_who_share_a_lock_do_not_count(store: Store) {
    const HOLDERS: u32 = 6;
    let (locks, others) = (store.manager().await, store.manager().await);
    let reader = || request(&others, 1).read();
    let permit = || request(&others, 1).permits(HOLDERS);
    let shared: [&dyn Fn() -> LockRequest; 2] = [&reader, &permit];
    for shared in shared {
        let mut guards = Vec::new();
        for _ in 0..HOLDERS {
            guards.push(within(TIME_LIMIT, shared().acquire()).await.unwrap());
        }
        let writer = joins(&locks, request(&locks, 1), 1).await;
        refused(request(&locks, 1)).await;
        refused(shared()).await;
        for guard in guards {
            release(guard).await;
        }
        release(within(TIME_LIMIT, writer).await.unwrap()).await;
        leaves_nothing(&store).await;
    }
}

async fn the_configuration_limits_whoever_waits(store: Store) {
    let locks = store.manager().await;
    let limited = connect(store.config().max_waiters(1)).await;
    let patient = || limited.lock("key").ttl(LONG).wait_forever();
    let guard = within(TIME_LIMIT, patient().acquire()).await.unwrap();
    let first = joins(&locks, patient(), 1).await;
    refused(patient()).await;
    let second = joins(&locks, patient().max_waiters(2), 2).await;
    let text = refused(patient().try_once()).await.to_string();
    assert!(!text.contains("max_waiters"), "{text}");
    release(guard).await;
    for waiter in [first, second] {
        release(within(TIME_LIMIT, waiter).await.unwrap()).await;
    }
}

async fn of_several_keys_each_queue_is_limited(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let guard = take(&locks, "key", LONG).await;
    let first = joins(&locks, request(&locks, 1), 1).await;
    let both = others.lock_all(["a", "key"]).ttl(LONG).wait_forever();
    refused(both.max_waiters(1)).await;
    eventually(TIME_LIMIT, async || {
        locks.status("a").await.is_ok_and(|it| !it.is_held())
    })
    .await;
    take_turn(&locks, "a").await;
    release(guard).await;
    release(within(TIME_LIMIT, first).await.unwrap()).await;
}

#[tokio::test]
async fn stores_without_a_queue_refuse_it() {
    let (setnx, redlock) = (SetnxServer::start().await, RedlockFleet::start().await);
    for store in [Store::new(setnx, &[]), Store::new(redlock, &[])] {
        let config = store.config();
        let error = config.clone().max_waiters(8).validate().unwrap_err();
        says_no(&error);
        let locks = connect(config).await;
        let acquiring = locks.lock("key").max_waiters(8).acquire();
        let error = within(TIME_LIMIT, acquiring).await.unwrap_err();
        says_no(&error);
    }
}

#[track_caller]
fn says_no(error: &LockError) {
    let text = error.to_string();
    let named = text.starts_with("invalid max_waiters: the store `Red");
    assert!(named && text.ends_with("does not support it"), "{text}");
}

#[tokio::test]
async fn a_number_that_limits_nothing_is_refused() {
    let locks = connect("memory:").await;
    let ticket = take(&locks, "ticket", LONG).await.into_ticket(LONG);
    let ticket = within(TIME_LIMIT, ticket).await.unwrap();
    for (request, setting) in [
        (locks.lock("key").max_waiters(0), "max_waiters"),
        (locks.lock("key").max_waiters(8).try_once(), "max_waiters"),
        (locks.adopt(&ticket).max_waiters(8), "ticket"),
    ] {
        let error = within(TIME_LIMIT, request.acquire()).await.unwrap_err();
        let named =
            matches!(&error, LockError::InvalidOptions { setting: it, .. } if *it == setting);
        assert!(named, "{error}");
    }
}
