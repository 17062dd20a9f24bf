//! `on_lost = "notify"`: a body whose lock is lost runs to its end, and can know.
//!
//! Section: guarantees.md#how-long-it-is-held

use std::time::Duration;

use lock_runtime::{LockError, current, distributed_lock};
use tests::{Store, TIME_LIMIT, on_every_store, release, settled, take_turn, within};
use tokio::sync::mpsc;

on_every_store! {
    a_body_runs_to_its_end [force_release],
    a_bare_guard_does_the_same [force_release],
    a_body_whose_lock_is_not_lost_notices_nothing,
    the_others_are_stopped [force_release],
    the_end_of_what_is_held_at_most_is_reported_too,
}

/// What a body says.
type Says = mpsc::UnboundedSender<&'static str>;

#[distributed_lock(key = "key", ttl = "60s", on_lost = "notify", guard = lock)]
async fn patient(says: Says) -> Result<bool, LockError> {
    says.send("begun").unwrap();
    lock.lost().await;
    assert!(!lock.is_held());
    assert!(!current().unwrap().is_held());
    assert_eq!(lock.remaining(), Duration::ZERO);
    tokio::time::sleep(Duration::from_millis(20)).await;
    says.send("ended").unwrap();
    Ok(lock.is_held())
}

async fn a_body_runs_to_its_end(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let (says, mut heard) = mpsc::unbounded_channel();
    let call = tokio::spawn(locks.clone().scope(patient(says)));
    assert_eq!(within(TIME_LIMIT, heard.recv()).await, Some("begun"));
    assert_eq!(others.force_release("key").await.unwrap(), 1);
    let next = within(TIME_LIMIT, others.lock("key").acquire())
        .await
        .unwrap();
    let outcome = within(TIME_LIMIT, call).await.unwrap();
    assert!(!outcome.unwrap(), "the caller gets the output");
    assert_eq!(heard.recv().await, Some("ended"));
    settled(&locks).await;
    assert!(next.is_held(), "its end took the lock from the next one");
    release(next).await;
    assert_eq!(store.traces().await, [""; 0]);
}

async fn a_bare_guard_does_the_same(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let guard = locks.lock("key").acquire().await.unwrap();
    let body = guard.hold_unstopped(async {
        assert!(current().unwrap().is_held());
        assert_eq!(others.force_release("key").await.unwrap(), 1);
        guard.lost().await;
        tokio::task::yield_now().await;
        assert!(!current().unwrap().is_held());
        42
    });
    assert_eq!(within(TIME_LIMIT, body).await, 42);
}

#[distributed_lock(key = "key", ttl = "60s", on_lost = "notify")]
async fn short() -> Result<u32, LockError> {
    tokio::task::yield_now().await;
    assert!(current().unwrap().is_held());
    Ok(7)
}

async fn a_body_whose_lock_is_not_lost_notices_nothing(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let outcome = within(TIME_LIMIT, locks.scope(short())).await;
    assert_eq!(outcome.unwrap(), 7);
    settled(&locks).await;
    take_turn(&others, "key").await;
    let _held = others.lock("key").acquire().await.unwrap();
    // It does not begin without the lock.
    let outcome = tokio::time::timeout(Duration::from_millis(100), locks.scope(short()));
    assert!(outcome.await.is_err());
}

#[distributed_lock(key = "key", ttl = "60s", on_lost = "cancel")]
async fn stopped(says: Says) -> Result<(), LockError> {
    says.send("begun").unwrap();
    std::future::pending().await
}

async fn the_others_are_stopped(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let (says, mut heard) = mpsc::unbounded_channel();
    let call = tokio::spawn(locks.clone().scope(stopped(says)));
    assert_eq!(within(TIME_LIMIT, heard.recv()).await, Some("begun"));
    assert_eq!(others.force_release("key").await.unwrap(), 1);
    let error = within(TIME_LIMIT, call).await.unwrap().unwrap_err();
    assert!(matches!(error, LockError::Lost { .. }), "{error}");
}

#[distributed_lock(key = "key", ttl = "60s", max_hold = "200ms", on_lost = "notify", guard = lock)]
async fn limited() -> Result<bool, LockError> {
    lock.lost().await;
    Ok(lock.is_held())
}

async fn the_end_of_what_is_held_at_most_is_reported_too(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let outcome = within(TIME_LIMIT, locks.scope(limited())).await;
    assert!(!outcome.unwrap());
    settled(&locks).await;
    take_turn(&others, "key").await;
}
