//! Waiting for a held lock: in order, as long as was asked for, and without a trace when given up.

use std::{sync::Arc, sync::Mutex, time::Duration, time::Instant};

use lock_runtime::LockError;
use tests::{
    APART, LONG, Store, TIME_LIMIT, connect, eventually, median, on_every_store, poll_once, queued,
    release, settled, take_turn, timed, within,
};
use tokio::{task::JoinSet, time::sleep};

on_every_store! {
    waits_are_served_in_order [fair],
    a_release_hands_the_lock_to_the_first_waiter [fair],
    a_hand_over_takes_no_time,
    a_wait_ends_with_contended,
    a_try_does_not_wait,
    a_configuration_may_wait_forever,
    a_wait_that_ends_leaves_the_queue,
    a_dropped_waiter_leaves_the_queue,
    a_dropped_acquire_leaves_no_trace,
}

// Section: guarantees.md#first-come-first-served
async fn waits_are_served_in_order(store: Store) {
    const WAITERS: usize = 9;
    let managers = [
        store.manager().await,
        store.manager().await,
        store.manager().await,
    ];
    let guard = managers[0].lock("key").ttl(LONG).acquire().await.unwrap();
    let served = Arc::new(Mutex::new(Vec::new()));
    let mut waiters = JoinSet::new();
    for position in 0..WAITERS {
        // Neighbours in the queue are of different managers.
        let locks = &managers[position % managers.len()];
        let waiter = queued(locks, locks.lock("key").ttl(LONG).wait_forever()).await;
        sleep(APART).await;
        let served = Arc::clone(&served);
        waiters.spawn(async move {
            let guard = waiter.await.unwrap();
            served.lock().unwrap().push(position);
            guard.release();
        });
    }
    assert!(served.lock().unwrap().is_empty());
    guard.release();
    within(TIME_LIMIT, waiters.join_all()).await;
    let served = served.lock().unwrap();
    assert!(served.is_sorted() && served.len() == WAITERS, "{served:?}");
}

// Section: guarantees.md#first-come-first-served
async fn a_release_hands_the_lock_to_the_first_waiter(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let guard = locks.lock("key").ttl(LONG).acquire().await.unwrap();
    let first = queued(&others, others.lock("key").ttl(LONG)).await;
    assert!(within(TIME_LIMIT, guard.release_confirmed()).await.unwrap());

    // It is never free in between: nobody who comes now gets it first.
    let newcomer = locks.lock("key").wait(Duration::ZERO).acquire();
    let error = within(TIME_LIMIT, newcomer).await.unwrap_err();
    assert!(matches!(error, LockError::Contended { .. }), "{error}");
    let (took, guard) = timed(first).await;
    assert!(guard.unwrap().is_held());
    assert!(took < Duration::from_secs(2), "handed over after {took:?}");
}

async fn a_hand_over_takes_no_time(store: Store) {
    let managers = [store.manager().await, store.manager().await];
    let mut guard = managers[0].lock("key").acquire().await.unwrap();
    let mut hand_overs = Vec::new();
    for turn in 1..=20 {
        let locks = &managers[turn % 2];
        let next = queued(locks, locks.lock("key").ttl(LONG).wait_forever()).await;
        guard.release();
        let (took, next) = timed(next).await;
        hand_overs.push(took);
        guard = next.unwrap();
    }
    // A waiter that is not notified asks a second after it has joined.
    let took = median(hand_overs);
    assert!(took < Duration::from_millis(600), "{took:?}");
}

// Section: guarantees.md#the-body-does-not-begin-without-the-lock
async fn a_wait_ends_with_contended(store: Store) {
    const WAIT: Duration = Duration::from_millis(400);
    let (locks, others) = (store.manager().await, store.manager().await);
    let _guard = locks.lock("key").ttl(LONG).acquire().await.unwrap();
    let (took, outcome) = timed(others.lock("key").wait(WAIT).acquire()).await;
    match outcome.unwrap_err() {
        LockError::Contended { waited, holder, .. } => {
            assert!(waited >= WAIT, "{waited:?}");
            assert!(holder.is_some());
        }
        error => panic!("{error}"),
    }
    assert!(took >= WAIT, "gave up after {took:?}");
    assert!(took < WAIT + Duration::from_secs(2), "waited {took:?}");
}

async fn a_try_does_not_wait(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let guard = locks.lock("key").ttl(LONG).acquire().await.unwrap();
    let tried = others.lock("key").wait_forever().try_once().acquire();
    let error = within(TIME_LIMIT, tried).await.unwrap_err();
    assert!(matches!(error, LockError::Contended { .. }), "{error}");
    release(guard).await;
    let tried = others.lock("key").try_once().acquire();
    release(within(TIME_LIMIT, tried).await.unwrap()).await;
}

async fn a_configuration_may_wait_forever(store: Store) {
    let locks = store.manager().await;
    let guard = locks.lock("key").ttl(LONG).acquire().await.unwrap();
    // Without the second setting it would fail at once.
    let patient = store.config().wait(Duration::ZERO).wait_forever();
    let patient = connect(patient).await;
    let waiter = queued(&patient, patient.lock("key").ttl(LONG)).await;
    release(guard).await;
    release(within(TIME_LIMIT, waiter).await.unwrap()).await;
}

async fn a_wait_that_ends_leaves_the_queue(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let guard = locks.lock("key").ttl(LONG).acquire().await.unwrap();
    let wait = Duration::from_millis(300);
    let impatient = queued(&locks, locks.lock("key").ttl(LONG).wait(wait)).await;
    let patient = queued(&others, others.lock("key").ttl(LONG).wait_forever()).await;
    assert!(within(TIME_LIMIT, impatient).await.is_err());

    guard.release();
    let (took, guard) = timed(patient).await;
    assert!(guard.is_ok());
    assert!(took < Duration::from_secs(2), "held up for {took:?}");
}

async fn a_dropped_waiter_leaves_the_queue(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let guard = locks.lock("key").ttl(LONG).acquire().await.unwrap();
    let dropped = queued(&locks, locks.lock("key").ttl(LONG).wait_forever()).await;
    let next = queued(&others, others.lock("key").ttl(LONG).wait_forever()).await;
    drop(dropped);

    guard.release();
    let (took, guard) = timed(next).await;
    assert!(guard.is_ok());
    assert!(took < Duration::from_secs(2), "held up for {took:?}");
}

// Section: guarantees.md#nothing-is-left-behind
async fn a_dropped_acquire_leaves_no_trace(store: Store) {
    let locks = store.manager().await;
    // Never polled.
    drop(locks.lock("key").ttl(LONG).acquire());
    // Dropped anywhere between asking and being answered.
    for turn in 0..200 {
        let mut acquire = locks.lock("key").ttl(LONG).acquire();
        let _ = poll_once(&mut acquire).await;
        // A busy machine takes milliseconds for each yield.
        let began = Instant::now();
        for _ in 0..turn {
            if began.elapsed() < Duration::from_millis(2) {
                std::thread::yield_now();
            }
        }
        drop(acquire);
    }
    settled(&locks).await;
    eventually(TIME_LIMIT, async || store.traces().await.is_empty()).await;
    take_turn(&store.manager().await, "key").await;
}
