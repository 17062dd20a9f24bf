//! One holder at a time, and who counts as another lock.
//!
//! Section: guarantees.md#one-holder-at-a-time

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use lock_runtime::LockError;
use tests::{LONG, Store, TIME_LIMIT, connect, on_every_store, take_turn, timed, within};
use tokio::task::{JoinSet, yield_now};

on_every_store! {
    one_holder_at_a_time [fencing],
    a_try_is_contended_at_once,
    the_holder_itself_is_contended_too,
    keys_are_independent,
    prefixes_are_independent [list],
    fences_grow [fencing],
}

async fn one_holder_at_a_time(store: Store) {
    let inside = Arc::new(AtomicBool::new(false));
    let highest = Arc::new(AtomicU64::new(0));
    let mut tasks = JoinSet::new();
    for _ in 0..3 {
        let locks = store.manager().await;
        for _ in 0..4 {
            let (locks, inside, highest) = (locks.clone(), inside.clone(), highest.clone());
            tasks.spawn(async move {
                for _ in 0..20 {
                    let guard = locks.lock("key").wait(TIME_LIMIT).acquire().await.unwrap();
                    assert!(!inside.swap(true, Ordering::SeqCst), "two holders");
                    yield_now().await;
                    let fence = guard.fencing_token().get();
                    assert!(highest.swap(fence, Ordering::SeqCst) < fence);
                    yield_now().await;
                    inside.store(false, Ordering::SeqCst);
                    guard.release();
                }
            });
        }
    }
    within(3 * TIME_LIMIT, tasks.join_all()).await;
}

async fn a_try_is_contended_at_once(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let request = locks.lock("stock:7").ttl(LONG);
    let guard = within(TIME_LIMIT, request.acquire()).await.unwrap();

    let (took, outcome) = timed(others.lock("stock:7").wait(Duration::ZERO).acquire()).await;
    let error = outcome.unwrap_err();
    assert!(took < Duration::from_secs(2), "a try took {took:?}");
    assert_eq!(error.key().unwrap().as_str(), "stock:7");
    assert!(error.is_retryable());
    assert!(error.retry_after().unwrap() <= LONG);
    let LockError::Contended { holder, waited, .. } = error else {
        panic!("{error}");
    };
    assert!(waited < Duration::from_secs(2), "{waited:?}");
    let remaining = holder.unwrap().remaining.unwrap();
    assert!(remaining <= LONG && remaining > LONG / 2, "{remaining:?}");

    assert!(within(TIME_LIMIT, guard.release_confirmed()).await.unwrap());
    take_turn(&others, "stock:7").await;
}

async fn the_holder_itself_is_contended_too(store: Store) {
    let locks = store.manager().await;
    let guard = locks.lock("key").ttl(LONG).acquire().await.unwrap();
    let second = locks.lock("key").wait(Duration::ZERO).acquire();
    let error = within(TIME_LIMIT, second).await.unwrap_err();
    assert!(matches!(error, LockError::Contended { .. }), "{error}");
    assert!(guard.is_held());
}

async fn keys_are_independent(store: Store) {
    let locks = store.manager().await;
    let guard = locks.lock("a:b").ttl(LONG).acquire().await.unwrap();
    assert_eq!(guard.key().as_str(), "a:b");
    for other in ["a", "b", "a:", "a:b:c", "A:B", "a%3Ab"] {
        take_turn(&locks, other).await;
    }
    assert!(guard.is_held());
}

async fn prefixes_are_independent(store: Store) {
    let config = store.config().prefix("shop");
    let shop = connect(config).await;
    let locks = store.manager().await;
    let guard = locks.lock("key").ttl(LONG).acquire().await.unwrap();
    take_turn(&shop, "key").await;
    assert!(guard.is_held());
}

// Section: guarantees.md#fencing-tokens-grow
async fn fences_grow(store: Store) {
    let managers = [store.manager().await, store.manager().await];
    let mut last = 0;
    for turn in 0..10 {
        let fence = take_turn(&managers[turn % 2], "key").await;
        assert!(fence > last, "{fence} after {last}");
        assert!(i64::try_from(fence).is_ok(), "{fence} fits no column");
        last = fence;
    }
    // A manager that comes later goes on from there.
    let fence = take_turn(&store.manager().await, "key").await;
    assert!(fence > last, "{fence} after {last}");
}
