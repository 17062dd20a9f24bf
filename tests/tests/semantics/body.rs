//! Work under a lock: what it returns, and when it does not run.

use std::time::Duration;

use lock_runtime::LockError;
use tests::{LONG, Store, TIME_LIMIT, on_every_store, settled, take_turn, within};

on_every_store! {
    run_holds_the_lock_while_the_closure_runs,
    a_manager_releases_before_what_it_is_asked_next,
    the_errors_of_a_body_come_back_untouched,
    a_closure_does_not_run_without_the_lock,
    work_that_asks_for_its_own_lock_gets_already_held,
    a_name_that_is_none_is_refused,
    a_ttl_out_of_range_is_refused,
}

async fn run_holds_the_lock_while_the_closure_runs(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let total = locks.lock("key").ttl(LONG).run(async |guard| {
        assert_eq!(guard.key().as_str(), "key");
        assert!(guard.is_held());
        let other = others.lock("key").wait(Duration::ZERO).acquire();
        assert!(within(TIME_LIMIT, other).await.is_err(), "two holders");
        42
    });
    assert_eq!(within(TIME_LIMIT, total).await.unwrap(), 42);
}

async fn a_manager_releases_before_what_it_is_asked_next(store: Store) {
    let locks = store.manager().await;
    for _ in 0..3 {
        // A try does not wait for the release of the one before.
        let turn = locks.lock("key").wait(Duration::ZERO).run(async |_| ());
        within(TIME_LIMIT, turn).await.unwrap();
    }
}

#[derive(Debug, PartialEq)]
struct OutOfStock(u32);

async fn the_errors_of_a_body_come_back_untouched(store: Store) {
    let locks = store.manager().await;
    let outcome = locks.lock("key").run(async |_| Err::<(), _>(OutOfStock(7)));
    assert_eq!(
        within(TIME_LIMIT, outcome).await.unwrap(),
        Err(OutOfStock(7))
    );
    let guard = locks.lock("key").acquire().await.unwrap();
    let outcome = guard.hold(async { Err::<(), _>(OutOfStock(8)) });
    assert_eq!(
        within(TIME_LIMIT, outcome).await.unwrap(),
        Err(OutOfStock(8))
    );
}

// Section: guarantees.md#the-body-does-not-begin-without-the-lock
async fn a_closure_does_not_run_without_the_lock(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let _guard = locks.lock("key").ttl(LONG).acquire().await.unwrap();
    for wait in [Duration::ZERO, Duration::from_millis(200)] {
        let request = others.lock("key").wait(wait);
        let body = async |_: &_| panic!("ran without the lock");
        let error = within(TIME_LIMIT, request.run::<()>(body))
            .await
            .unwrap_err();
        assert!(matches!(error, LockError::Contended { .. }), "{error}");
    }
}

// Section: guarantees.md#one-holder-at-a-time
async fn work_that_asks_for_its_own_lock_gets_already_held(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let own = async || {
        let error = locks.lock("key").acquire().await.unwrap_err();
        let refused = matches!(&error, LockError::AlreadyHeld { key, .. } if key.as_str() == "key");
        assert!(refused, "{error}");
    };
    let work = locks.lock("key").run(async |_| {
        own().await;
        tokio::join!(own(), own());
        tokio::task::yield_now().await;
        own().await;
        // Another lock under it, and the same one below that.
        take_turn(&locks, "other").await;
        locks
            .lock("inner")
            .run(async |_| own().await)
            .await
            .unwrap();
        // So is another manager, and a task of its own.
        let other = others.lock("key").wait(Duration::ZERO).acquire();
        let error = other.await.unwrap_err();
        assert!(matches!(error, LockError::Contended { .. }), "{error}");
        settled(&others).await;
        let spawned = locks.lock("key").wait(Duration::ZERO).acquire();
        let error = tokio::spawn(spawned).await.unwrap().unwrap_err();
        assert!(matches!(error, LockError::Contended { .. }), "{error}");
    });
    within(TIME_LIMIT, work).await.unwrap();
    take_turn(&locks, "key").await;
}

async fn a_name_that_is_none_is_refused(store: Store) {
    let locks = store.manager().await;
    // The second one only becomes too long when it is escaped.
    for name in [String::new(), "}".repeat(342), "x".repeat(1025)] {
        let error = within(TIME_LIMIT, locks.lock(&name).acquire())
            .await
            .unwrap_err();
        assert!(matches!(error, LockError::InvalidKey { .. }), "{error}");
    }
    for name in ["}".repeat(341), "x".repeat(1024), " ".to_owned()] {
        take_turn(&locks, &name).await;
    }
}

async fn a_ttl_out_of_range_is_refused(store: Store) {
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    let locks = store.manager().await;
    let millisecond = Duration::from_millis(1);
    for ttl in [Duration::ZERO, 99 * millisecond, DAY + millisecond] {
        let acquire = locks.lock("key").ttl(ttl).acquire();
        let error = within(TIME_LIMIT, acquire).await.unwrap_err();
        assert!(
            matches!(error, LockError::InvalidOptions { setting: "ttl", .. }),
            "{error}"
        );
        assert!(!error.is_retryable());
    }
    for ttl in [100 * millisecond, DAY] {
        let guard = within(TIME_LIMIT, locks.lock("key").ttl(ttl).acquire()).await;
        assert!(guard.unwrap().is_held());
    }
}
