//! `current()`: the guard of the innermost lock under which the code runs.
//!
//! Section: guarantees.md#work-that-runs-under-the-lock

use lock_runtime::{LockGuard, current};
use tests::{LONG, Store, TIME_LIMIT, on_every_store, settled, take_turn, within};
use tokio::task::yield_now;

use crate::{at_once, contended};

on_every_store! {
    current_is_the_innermost,
    current_releases_nothing [several_keys],
    current_is_none_outside,
}

/// Deep below a locked function.
async fn fence() -> Option<u64> {
    yield_now().await;
    current().map(|guard| guard.fencing_token().get())
}

async fn current_is_the_innermost(store: Store) {
    let locks = store.manager().await;
    let work = at_once(&locks, "outer").run(async |outer| {
        let outer = Some(outer.fencing_token().get());
        assert_eq!(fence().await, outer);
        let work = at_once(&locks, "inner").run(async |inner| {
            assert_eq!(fence().await, Some(inner.fencing_token().get()));
            assert_eq!(current().unwrap().key().as_str(), "inner");
        });
        work.await.unwrap();
        assert_eq!(fence().await, outer);
        // Each in its own.
        let beside = at_once(&locks, "beside").run(async |beside| {
            for _ in 0..5 {
                assert_eq!(fence().await, Some(beside.fencing_token().get()));
            }
        });
        let (beside, ()) = tokio::join!(beside, async {
            for _ in 0..5 {
                assert_eq!(fence().await, outer);
            }
        });
        beside.unwrap();
        assert_eq!(tokio::spawn(fence()).await.unwrap(), None);
    });
    within(TIME_LIMIT, work).await.unwrap();
    // A closure that returns a future does some of its work before.
    let work = at_once(&locks, "closure").run(|guard: &LockGuard| {
        let seen = current().map(|it| it.fencing_token());
        let fence = guard.fencing_token();
        async move { (seen, fence) }
    });
    let (seen, fence) = within(TIME_LIMIT, work).await.unwrap();
    assert_eq!(seen, Some(fence));
}

async fn current_releases_nothing(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let all = locks.lock_all(["a", "b"]).ttl(LONG);
    let work = all.run(async |guard| {
        drop(current());
        current().unwrap().release();
        assert!(current().unwrap().release_confirmed().await.unwrap());
        settled(&locks).await;
        assert!(guard.is_held());
        contended(at_once(&others, "a")).await;
        current()
    });
    let kept = within(TIME_LIMIT, work).await.unwrap().unwrap();
    // It keeps nothing, either.
    settled(&locks).await;
    assert!(!kept.is_held());
    take_turn(&others, "a").await;
    drop(kept);
    take_turn(&others, "b").await;
}

async fn current_is_none_outside(store: Store) {
    let locks = store.manager().await;
    assert!(current().is_none());
    let guard = at_once(&locks, "key").acquire().await.unwrap();
    assert!(current().is_none(), "nothing runs under it");
    guard
        .hold(async { assert!(current().is_some()) })
        .await
        .unwrap();
    guard
        .hold_unstopped(async { assert!(current().is_some()) })
        .await;
    assert!(current().is_none());
    let panics = std::panic::AssertUnwindSafe(async {
        let body = guard.hold(async { panic!("on purpose") });
        let () = body.await.unwrap();
    });
    let mut panics = Box::pin(panics.0);
    let waker = std::task::Waker::noop();
    let mut cx = std::task::Context::from_waker(waker);
    let poll = std::panic::AssertUnwindSafe(|| panics.as_mut().poll(&mut cx));
    assert!(std::panic::catch_unwind(poll).is_err());
    assert!(current().is_none(), "left behind by a panic");
}
