//! When to try again.

use std::time::Duration;

use lock_runtime::{LockError, LockManager};
use tests::within;
use tests::{LONG, Store, on_every_store};

use crate::{PATIENCE, SECOND};

on_every_store! {
    a_lease_that_is_renewed_does_not_say_when_the_work_ends,
    a_fixed_lease_says_when_it_ends_at_the_latest,
    a_lock_that_rests_opens_at_a_known_time,
}

async fn retry_after(locks: &LockManager) -> Duration {
    let request = locks.lock("key").wait(SECOND / 20);
    match within(PATIENCE, request.acquire()).await {
        Err(error @ LockError::Contended { .. }) => error.retry_after().unwrap(),
        other => panic!("{other:?}"),
    }
}

async fn a_lease_that_is_renewed_does_not_say_when_the_work_ends(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let _held = locks.lock("key").ttl(LONG).acquire().await.unwrap();
    assert_eq!(retry_after(&others).await, SECOND);
}

async fn a_fixed_lease_says_when_it_ends_at_the_latest(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let request = locks.lock("key").ttl(SECOND / 2).renew(false);
    let _held = request.acquire().await.unwrap();
    assert!(retry_after(&others).await <= SECOND / 2);
}

async fn a_lock_that_rests_opens_at_a_known_time(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let request = locks.lock("key").min_hold(LONG);
    let guard = request.acquire().await.unwrap();
    assert!(guard.release_confirmed().await.unwrap());
    let after = retry_after(&others).await;
    assert!(after > LONG / 2 && after <= LONG, "{after:?}");
}
