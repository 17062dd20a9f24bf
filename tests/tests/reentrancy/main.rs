//! Promise: work that asks for its own lock gets `AlreadyHeld`, or re-enters if the call is reentrant; it can find its guard.
//!
//! Section: guarantees.md#work-that-runs-under-the-lock
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use std::time::Duration;

use lock_runtime::{LockError, LockManager, LockRequest, current, distributed_lock};
use tests::{LONG, Store, TIME_LIMIT, on_every_store, release, settled, take_turn, within};
use tokio::task::yield_now;

mod current;
mod limits;

on_every_store! {
    it_is_already_held_across_join_and_select,
    it_is_not_across_spawn,
    annotated_functions_nest,
    what_joins_releases_nothing,
    what_joins_is_lost_with_the_first [force_release],
    what_has_joined_and_escapes_is_not_held_any_more,
    a_reader_joins_a_writer [read permits],
    a_writer_does_not_join_a_reader [read permits],
    permits_join_their_own_number [permits],
    some_of_several_keys_join [several_keys],
    more_keys_than_are_held_do_not_join [several_keys],
    a_lock_that_was_lost_is_taken_anew [force_release fencing],
    another_manager_joins_nothing,
}

fn at_once(locks: &LockManager, key: &str) -> LockRequest {
    locks.lock(key).ttl(LONG).wait(Duration::ZERO)
}

/// The request is refused, as its own work is in its way.
async fn already_held(request: LockRequest, key: &str) {
    let error = within(TIME_LIMIT, request.acquire()).await.unwrap_err();
    let refused = matches!(&error, LockError::AlreadyHeld { key: of, .. } if of.as_str() == key);
    assert!(refused, "{error}");
}

/// The request is refused as those of others are.
async fn contended(request: LockRequest) {
    let error = within(TIME_LIMIT, request.acquire()).await.unwrap_err();
    assert!(matches!(error, LockError::Contended { .. }), "{error}");
}

async fn it_is_already_held_across_join_and_select(store: Store) {
    let locks = store.manager().await;
    let ask = || already_held(locks.lock("key").wait_forever(), "key");
    let work = at_once(&locks, "key").run(async |_| {
        yield_now().await;
        tokio::join!(ask(), async {
            yield_now().await;
            ask().await;
        });
        tokio::select! {
            () = ask() => {}
            () = std::future::pending() => {}
        }
        let boxed: std::pin::Pin<Box<dyn Future<Output = ()> + '_>> = Box::pin(ask());
        boxed.await;
    });
    within(TIME_LIMIT, work).await.unwrap();
    // A bare guard is nobody's work.
    let guard = at_once(&locks, "key").acquire().await.unwrap();
    contended(at_once(&locks, "key").reentrant()).await;
    release(guard).await;
}

async fn it_is_not_across_spawn(store: Store) {
    let locks = store.manager().await;
    let work = at_once(&locks, "key").reentrant().run(async |_| {
        let request = at_once(&locks, "key").reentrant();
        tokio::spawn(contended(request)).await.unwrap();
    });
    within(TIME_LIMIT, work).await.unwrap();
}

#[distributed_lock(key = "account:{id}", reentrant = true, ttl = "60s", wait = "0s", guard = lock)]
async fn outer(id: u32) -> Result<(u64, u64), LockError> {
    yield_now().await;
    let inner = inner(id).await?;
    yield_now().await;
    assert!(lock.is_held());
    Ok((lock.fencing_token().get(), inner))
}

#[distributed_lock(key = "account:{id}", reentrant = true, ttl = "60s", wait = "0s", release = "confirmed", guard = lock)]
async fn inner(id: u32) -> Result<u64, LockError> {
    yield_now().await;
    assert!(lock.is_held());
    Ok(lock.fencing_token().get())
}

#[distributed_lock(key = "account:{id}", ttl = "60s", wait = "0s")]
async fn strict(id: u32) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "account:{id}", reentrant = true, ttl = "60s", wait = "0s")]
async fn depth(id: u32, left: u32) -> Result<u32, LockError> {
    match left {
        0 => Ok(0),
        _ => Ok(1 + Box::pin(depth(id, left - 1)).await?),
    }
}

async fn annotated_functions_nest(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let work = locks.scope(async {
        let (outside, inside) = outer(1).await.unwrap();
        assert_eq!(outside, inside, "another lease");
        assert_eq!(depth(1, 20).await.unwrap(), 20);
        let work = at_once(&locks, "account:1").run(async |guard| {
            assert_eq!(inner(1).await.unwrap(), guard.fencing_token().get());
            let error = strict(1).await.unwrap_err();
            assert!(matches!(error, LockError::AlreadyHeld { .. }), "{error}");
            // Another one is another lock.
            strict(2).await.unwrap();
        });
        work.await.unwrap();
        strict(1).await.unwrap();
    });
    within(TIME_LIMIT, work).await;
    settled(&locks).await;
    take_turn(&others, "account:1").await;
    assert_eq!(store.traces().await, [""; 0]);
}

async fn what_joins_releases_nothing(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let work = at_once(&locks, "key").run(async |outer| {
        for confirmed in [false, true] {
            let inner = at_once(&locks, "key").reentrant().acquire().await.unwrap();
            assert_eq!(inner.fencing_token(), outer.fencing_token());
            if confirmed {
                assert!(inner.release_confirmed().await.unwrap());
            } else {
                inner.release();
            }
            settled(&locks).await;
            assert!(outer.is_held());
            contended(at_once(&others, "key")).await;
        }
    });
    within(TIME_LIMIT, work).await.unwrap();
    settled(&locks).await;
    take_turn(&others, "key").await;
}

async fn what_joins_is_lost_with_the_first(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let work = at_once(&locks, "key").run(async |_| {
        let inner = at_once(&locks, "key").reentrant().run(async |_| {
            assert_eq!(others.force_release("key").await.unwrap(), 1);
            std::future::pending::<()>().await;
        });
        inner.await
    });
    let error = within(TIME_LIMIT, work).await.unwrap_err();
    assert!(matches!(error, LockError::Lost { .. }), "{error}");
    settled(&locks).await;
    take_turn(&others, "key").await;
}

async fn what_has_joined_and_escapes_is_not_held_any_more(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let work = at_once(&locks, "key").run(async |_| {
        let inner = at_once(&locks, "key").reentrant();
        inner.acquire().await.unwrap()
    });
    let escaped = within(TIME_LIMIT, work).await.unwrap();
    settled(&locks).await;
    assert!(!escaped.is_held());
    let lost = escaped.hold(async { panic!("ran without the lock") });
    let lost: Result<(), _> = within(TIME_LIMIT, lost).await;
    assert!(matches!(lost, Err(LockError::Lost { .. })));
    take_turn(&others, "key").await;
    assert!(
        !within(TIME_LIMIT, escaped.release_confirmed())
            .await
            .unwrap()
    );
}

async fn a_reader_joins_a_writer(store: Store) {
    let locks = store.manager().await;
    let work = at_once(&locks, "key").run(async |guard| {
        let inner = at_once(&locks, "key").read().reentrant();
        let inner = inner.acquire().await.unwrap();
        assert_eq!(inner.fencing_token(), guard.fencing_token());
        already_held(at_once(&locks, "key").read(), "key").await;
        let permit = at_once(&locks, "key").permits(2).reentrant();
        assert!(permit.acquire().await.unwrap().is_held());
    });
    within(TIME_LIMIT, work).await.unwrap();
}

async fn a_writer_does_not_join_a_reader(store: Store) {
    let locks = store.manager().await;
    let work = at_once(&locks, "key").read().run(async |guard| {
        already_held(at_once(&locks, "key").reentrant(), "key").await;
        already_held(at_once(&locks, "key").permits(2).reentrant(), "key").await;
        let inner = at_once(&locks, "key").read().reentrant();
        let inner = inner.acquire().await.unwrap();
        assert_eq!(inner.fencing_token(), guard.fencing_token());
    });
    within(TIME_LIMIT, work).await.unwrap();
}

async fn permits_join_their_own_number(store: Store) {
    let locks = store.manager().await;
    let work = at_once(&locks, "key").permits(2).run(async |guard| {
        let inner = at_once(&locks, "key").permits(2).reentrant();
        let inner = inner.acquire().await.unwrap();
        assert_eq!(inner.fencing_token(), guard.fencing_token());
        already_held(at_once(&locks, "key").permits(2), "key").await;
        already_held(at_once(&locks, "key").permits(3).reentrant(), "key").await;
        already_held(at_once(&locks, "key").reentrant(), "key").await;
    });
    within(TIME_LIMIT, work).await.unwrap();
}

async fn some_of_several_keys_join(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let all = locks.lock_all(["a", "b", "c"]).ttl(LONG);
    let work = all.wait(Duration::ZERO).run(async |guard| {
        for subset in [&["a"][..], &["c", "b"], &["a", "b", "c"]] {
            let some = locks.lock_all(subset.iter().copied()).reentrant();
            let some = some.acquire().await.unwrap();
            assert_eq!(some.fencing_token(), guard.fencing_token());
            drop(some);
            let strict = locks.lock_all(subset.iter().copied());
            let error = strict.acquire().await.unwrap_err();
            assert!(matches!(error, LockError::AlreadyHeld { .. }), "{error}");
        }
        settled(&locks).await;
        assert!(guard.is_held());
        for key in ["a", "b", "c"] {
            contended(at_once(&others, key)).await;
        }
    });
    within(TIME_LIMIT, work).await.unwrap();
}

async fn more_keys_than_are_held_do_not_join(store: Store) {
    let locks = store.manager().await;
    let work = at_once(&locks, "b").run(async |guard| {
        already_held(locks.lock_all(["a", "b"]).reentrant(), "b").await;
        settled(&locks).await;
        take_turn(&locks, "a").await;
        assert!(guard.is_held());
    });
    within(TIME_LIMIT, work).await.unwrap();
}

async fn a_lock_that_was_lost_is_taken_anew(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let guard = at_once(&locks, "key").acquire().await.unwrap();
    let work = guard.hold_unstopped(async {
        assert_eq!(others.force_release("key").await.unwrap(), 1);
        guard.lost().await;
        let again = at_once(&locks, "key").reentrant();
        let again = again.wait(TIME_LIMIT).acquire().await.unwrap();
        assert!(again.fencing_token() > guard.fencing_token());
        again
            .hold(async { assert!(current().unwrap().is_held()) })
            .await
            .unwrap();
        release(again).await;
    });
    within(TIME_LIMIT, work).await;
}

async fn another_manager_joins_nothing(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let work = at_once(&locks, "key").run(async |_| {
        contended(at_once(&others, "key").reentrant()).await;
    });
    within(TIME_LIMIT, work).await.unwrap();
}
