//! `min_hold`: the lock stays closed until then, and the caller does not wait for it.
//!
//! Section: guarantees.md#how-long-it-is-held

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lock_runtime::testing::Locks;
use lock_runtime::{LockError, LockManager, LockRequest, distributed_lock};
use tests::{
    LONG, Store, TIME_LIMIT, kinds::Kind, on_every_store, poll_once, queued, release, settled,
    take_turn, timed, within,
};

on_every_store! {
    the_caller_does_not_wait_and_a_waiter_follows_at_once [min_hold fencing],
    it_counts_from_the_grant [min_hold],
    a_longer_body_starts_no_cooldown [min_hold],
    a_cooling_lock_is_closed_for_everybody [min_hold read permits force_release],
    it_outlives_the_ttl_of_the_lock [min_hold],
    those_who_share_a_lock_cool_down_too [min_hold read permits],
    several_keys_all_cool_down [min_hold several_keys],
    a_dropped_acquire_starts_no_cooldown [min_hold force_release],
    a_lost_lock_skips_the_cooldown [min_hold force_release],
    a_body_that_panics_or_is_dropped_starts_the_cooldown [min_hold],
    waiters_are_notified_of_a_cooldown [min_hold],
    an_annotated_function_cools_down [min_hold],
    a_least_time_longer_than_the_most_is_refused [min_hold],
}

const COOLDOWN: Duration = Duration::from_millis(1200);

/// By how much a cooldown may be longer: its end is noticed by asking.
const SOON: Duration = Duration::from_secs(1);

fn with_cooldown(locks: &LockManager) -> LockRequest {
    locks.lock("key").ttl(LONG).min_hold(COOLDOWN)
}

async fn is_closed(locks: &LockManager, kind: Kind, key: &str) {
    let request = kind.request(locks, key).wait(Duration::ZERO);
    let error = within(TIME_LIMIT, request.acquire()).await.unwrap_err();
    assert!(matches!(error, LockError::Contended { .. }), "{error}");
}

async fn the_caller_does_not_wait_and_a_waiter_follows_at_once(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let start = Instant::now();
    let guard = with_cooldown(&locks).acquire().await.unwrap();
    let fence = guard.fencing_token();
    let waiter = queued(&others, others.lock("key").ttl(LONG).wait_forever()).await;
    let (took, ()) = timed(release(guard)).await;
    assert!(took < COOLDOWN / 2, "the caller waited {took:?}");
    let next = within(TIME_LIMIT, waiter).await.unwrap();
    let closed = start.elapsed();
    assert!(closed >= COOLDOWN, "open after {closed:?}");
    assert!(closed < COOLDOWN + SOON, "open after {closed:?}");
    assert!(next.fencing_token() > fence);
    release(next).await;
    assert_eq!(store.traces().await, [""; 0]);
}

async fn it_counts_from_the_grant(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let start = Instant::now();
    let body = async |_: &_| tokio::time::sleep(COOLDOWN / 2).await;
    with_cooldown(&locks).run(body).await.unwrap();
    let next = others.lock("key").wait(TIME_LIMIT).acquire();
    within(TIME_LIMIT, next).await.unwrap().release();
    let closed = start.elapsed();
    assert!((COOLDOWN..COOLDOWN + SOON).contains(&closed), "{closed:?}");
}

async fn a_longer_body_starts_no_cooldown(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let guard = locks.lock("key").ttl(LONG).min_hold(COOLDOWN / 4).acquire();
    let guard = guard.await.unwrap();
    tokio::time::sleep(COOLDOWN / 2).await;
    release(guard).await;
    take_turn(&others, "key").await;
}

async fn a_cooling_lock_is_closed_for_everybody(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    release(locks.lock("key").min_hold(LONG).acquire().await.unwrap()).await;
    for locks in [&locks, &others] {
        for kind in [Kind::Exclusive, Kind::Reader, Kind::Permits(2)] {
            is_closed(locks, kind, "key").await;
        }
    }
    let status = others.status("key").await.unwrap();
    assert_eq!(status.holders.len(), 1, "{status:?}");
    assert!(status.holders[0].cooling_down, "{status:?}");
    // Nobody works under it: it may be opened by hand.
    assert_eq!(others.force_release("key").await.unwrap(), 1);
    take_turn(&others, "key").await;
}

async fn it_outlives_the_ttl_of_the_lock(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let start = Instant::now();
    let ttl = Duration::from_millis(300);
    let request = with_cooldown(&locks).ttl(ttl);
    release(request.acquire().await.unwrap()).await;
    let next = others.lock("key").wait(TIME_LIMIT).acquire();
    within(TIME_LIMIT, next).await.unwrap().release();
    let closed = start.elapsed();
    assert!((COOLDOWN..COOLDOWN + SOON).contains(&closed), "{closed:?}");
}

async fn those_who_share_a_lock_cool_down_too(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let start = Instant::now();
    let permit = |locks: &LockManager| locks.lock("permits").permits(2).ttl(LONG);
    let reader = locks.lock("readers").read().ttl(LONG);
    let first = permit(&locks).acquire().await.unwrap();
    release(permit(&locks).min_hold(COOLDOWN).acquire().await.unwrap()).await;
    release(reader.min_hold(COOLDOWN).acquire().await.unwrap()).await;
    // A permit that cools down is taken, and a reader that cools down keeps out writers alone.
    is_closed(&others, Kind::Permits(2), "permits").await;
    is_closed(&others, Kind::Writer, "readers").await;
    let readers = others.lock("readers").read().wait(Duration::ZERO);
    release(within(TIME_LIMIT, readers.acquire()).await.unwrap()).await;
    is_closed(&others, Kind::Writer, "readers").await;

    let next = permit(&others).wait_forever();
    let writer = others.lock("readers").ttl(LONG).wait_forever();
    let (next, writer) = (queued(&others, next).await, queued(&others, writer).await);
    for waiter in [next, writer] {
        release(within(TIME_LIMIT, waiter).await.unwrap()).await;
        let closed = start.elapsed();
        assert!((COOLDOWN..COOLDOWN + SOON).contains(&closed), "{closed:?}");
    }
    assert!(first.is_held());
    release(first).await;
    take_turn(&others, "permits").await;
    assert_eq!(store.traces().await, [""; 0]);
}

async fn several_keys_all_cool_down(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let all = locks.lock_all(["a", "b"]).min_hold(LONG);
    release(within(TIME_LIMIT, all.acquire()).await.unwrap()).await;
    for key in ["a", "b"] {
        is_closed(&others, Kind::Exclusive, key).await;
    }
}

async fn a_dropped_acquire_starts_no_cooldown(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    for turn in 0..50 {
        let request = locks.lock("key").min_hold(LONG).wait(TIME_LIMIT);
        let mut acquire = request.acquire();
        if poll_once(&mut acquire).await.is_ready() {
            // The machine was busy, and it has got the lock.
            assert_eq!(locks.force_release("key").await.unwrap(), 1);
            continue;
        }
        if turn % 2 == 0 {
            // It was granted, and nobody has looked.
            settled(&locks).await;
        }
        drop(acquire);
        settled(&locks).await;
        take_turn(&others, "key").await;
    }
    assert_eq!(store.traces().await, [""; 0]);
}

async fn a_lost_lock_skips_the_cooldown(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let work = locks.lock("key").min_hold(LONG).run(async |_| {
        assert_eq!(others.force_release("key").await.unwrap(), 1);
        std::future::pending::<()>().await;
    });
    let error = within(TIME_LIMIT, work).await.unwrap_err();
    assert!(matches!(error, LockError::Lost { .. }), "{error}");
    settled(&locks).await;
    take_turn(&others, "key").await;
}

#[distributed_lock(key = "nightly", min_hold = "1m", wait = "0s")]
async fn nightly() -> Result<(), LockError> {
    Ok(())
}

async fn an_annotated_function_cools_down(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let (took, outcome) = timed(locks.scope(nightly())).await;
    outcome.unwrap();
    assert!(took < Duration::from_secs(5), "the caller waited {took:?}");
    for locks in [locks, others] {
        let error = within(TIME_LIMIT, locks.scope(nightly()))
            .await
            .unwrap_err();
        let LockError::Contended { holder, .. } = error else {
            panic!("{error}");
        };
        let holder = holder.unwrap();
        assert!(holder.function.unwrap().ends_with("::nightly"));
        assert!(holder.remaining.unwrap() > Duration::from_secs(40));
    }
}

async fn a_least_time_longer_than_the_most_is_refused(store: Store) {
    let locks = store.manager().await;
    let request = locks.lock("key").min_hold(LONG).max_hold(LONG / 2);
    let error = within(TIME_LIMIT, request.acquire()).await.unwrap_err();
    let setting = matches!(
        error,
        LockError::InvalidOptions {
            setting: "min_hold",
            ..
        }
    );
    assert!(setting, "{error}");
    assert_eq!(store.traces().await, [""; 0]);
}

async fn a_body_that_panics_or_is_dropped_starts_the_cooldown(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let request = |key| locks.lock(key).ttl(LONG).min_hold(LONG);
    let guard = request("panics").acquire().await.unwrap();
    let panics = tokio::spawn(async move {
        let body = guard.hold(async { panic!("on purpose") });
        let () = body.await.unwrap();
    });
    assert!(within(TIME_LIMIT, panics).await.unwrap_err().is_panic());
    let runs = AtomicBool::new(false);
    let mut dropped = Box::pin(request("dropped").run(async |_| {
        runs.store(true, Ordering::SeqCst);
        std::future::pending::<()>().await;
    }));
    while !runs.load(Ordering::SeqCst) {
        assert!(poll_once(&mut dropped).await.is_pending());
        tokio::task::yield_now().await;
    }
    drop(dropped);
    settled(&locks).await;
    for key in ["panics", "dropped"] {
        is_closed(&others, Kind::Exclusive, key).await;
        let status = others.status(key).await.unwrap();
        assert!(status.holders[0].cooling_down, "{status:?}");
    }
}

async fn waiters_are_notified_of_a_cooldown(store: Store) {
    const WAIT: Duration = Duration::from_millis(2500);
    let (locks, others) = (store.manager().await, store.manager().await);
    let guard = locks.lock("key").ttl(LONG).min_hold(LONG);
    let guard = guard.acquire().await.unwrap();
    let waiter = queued(&others, others.lock("key").wait(WAIT)).await;
    release(guard).await;
    let error = within(TIME_LIMIT, waiter).await.unwrap_err();
    let LockError::Contended { holder, .. } = &error else {
        panic!("{error}");
    };
    let holder = holder.as_ref().unwrap();
    assert!(holder.cooling_down, "{error}");
    let left = holder.remaining.unwrap();
    assert!(
        left + WAIT / 10 * 9 < LONG && left > LONG / 2,
        "{left:?} left"
    );
}

#[tokio::test(start_paused = true)]
async fn a_waiter_in_memory_is_served_when_the_cooldown_ends_and_not_later() -> Result<(), LockError>
{
    let locks = Locks::new();
    let cooldown = Duration::from_millis(500);
    let start = tokio::time::Instant::now();
    let guard = locks
        .manager()
        .lock("k")
        .min_hold(cooldown)
        .acquire()
        .await?;
    let release = async {
        tokio::time::sleep(cooldown / 5).await;
        guard.release();
    };
    let (next, ()) = tokio::join!(locks.manager().lock("k").acquire(), release);
    next?.release();
    let waited = start.elapsed();
    assert!(
        (cooldown..cooldown * 11 / 10).contains(&waited),
        "{waited:?}"
    );
    Ok(())
}
