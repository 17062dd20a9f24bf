//! When to try again.
//!
//! Section: statuses.md#what-a-service-answers

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use lock_runtime::{LockError, LockManager};
use tests::{LONG, Store, eventually, on_every_store, release, take, within};
use tokio::{task::JoinSet, time::sleep};

use crate::{SECOND, TIME_LIMIT};

const TURN: Duration = Duration::from_millis(25);

// A store that lists its locks counts who waits for them.
on_every_store! {
    a_lease_that_is_renewed_does_not_say_when_the_work_ends,
    a_fixed_lease_says_when_it_ends_at_the_latest,
    a_cooling_lock_opens_at_a_known_time [min_hold],
    a_lock_that_changes_hands_quickly_is_worth_another_try_soon [list],
    a_longer_queue_takes_longer [list],
}

async fn retry_after(locks: &LockManager) -> Duration {
    let request = locks.lock("key").wait(SECOND / 20);
    match within(TIME_LIMIT, request.acquire()).await {
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

async fn a_cooling_lock_opens_at_a_known_time(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let request = locks.lock("key").min_hold(LONG);
    let guard = request.acquire().await.unwrap();
    assert!(guard.release_confirmed().await.unwrap());
    let after = retry_after(&others).await;
    assert!(after > LONG / 2 && after <= LONG, "{after:?}");
}

/// What a refusal says of a lock that so many take in turn, each for 25 ms; the median of many.
async fn of_a_hot_lock(store: &Store, workers: usize, wait: Duration) -> Duration {
    let (locks, others) = (store.manager().await, store.manager().await);
    let turns = Arc::new(AtomicUsize::new(0));
    let mut tasks = JoinSet::new();
    for _ in 0..workers {
        let (locks, turns) = (locks.clone(), Arc::clone(&turns));
        tasks.spawn(async move {
            loop {
                let guard = take(&locks, "hot", LONG).await;
                sleep(TURN).await;
                turns.fetch_add(1, Ordering::SeqCst);
                release(guard).await;
            }
        });
    }
    // The queue has its full length, and has moved.
    eventually(TIME_LIMIT, async || {
        turns.load(Ordering::SeqCst) > 2 * workers
    })
    .await;
    let mut estimates = Vec::new();
    while estimates.len() < 15 {
        let request = others.lock("hot").wait(wait);
        if let Err(error) = within(TIME_LIMIT, request.acquire()).await {
            assert!(matches!(error, LockError::Contended { .. }), "{error}");
            estimates.push(error.retry_after().unwrap());
        }
        sleep(TURN / 2).await;
    }
    estimates.sort_unstable();
    estimates[estimates.len() / 2]
}

async fn a_lock_that_changes_hands_quickly_is_worth_another_try_soon(store: Store) {
    // A waiter that gives up early knows the length of the queue, and that it takes longer than that.
    for (wait, least) in [(Duration::ZERO, 2 * TURN), (TURN, TURN)] {
        let estimate = of_a_hot_lock(&store, 5, wait).await;
        assert!(estimate >= least && estimate < SECOND, "{estimate:?}");
    }
}

async fn a_longer_queue_takes_longer(store: Store) {
    // Far apart, since a busy machine makes turns of the short queue longer.
    let [short, long] = [2, 24];
    let short = of_a_hot_lock(&store, short, Duration::ZERO).await;
    let long = of_a_hot_lock(&store, long, Duration::ZERO).await;
    assert!(short < long, "{short:?} and {long:?}");
}
