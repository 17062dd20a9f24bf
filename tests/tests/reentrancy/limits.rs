//! How long a call that joins is held: its own `max_hold` and fixed lease count, its `min_hold` does not.
//!
//! Section: guarantees.md#work-that-runs-under-the-lock

use std::time::Duration;

use lock_runtime::{LockError, current, distributed_lock};
use tests::{LONG, Store, TIME_LIMIT, on_every_store, release, settled, take_turn, within};

use crate::{at_once, contended};

on_every_store! {
    the_max_hold_of_what_joins_stops_it_alone,
    a_fixed_lease_that_joins_ends_at_its_ttl,
    an_annotated_function_that_joins_is_stopped,
    a_shorter_call_that_joins_notices_nothing,
    the_limit_of_what_joins_ends_with_its_guard,
    what_joins_several_keys_names_the_last_of_them [several_keys],
    the_min_hold_of_what_joins_does_not_count [min_hold],
    a_shutdown_does_not_wait_for_the_limit_of_what_joined,
}

const MOST: Duration = Duration::from_millis(200);

async fn the_max_hold_of_what_joins_stops_it_alone(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let work = at_once(&locks, "key").run(async |outer| {
        let inner = at_once(&locks, "key").reentrant().max_hold(MOST);
        let inner = inner.acquire().await.unwrap();
        assert!(inner.remaining() <= MOST);
        assert_eq!(inner.fencing_token(), outer.fencing_token());
        assert_eq!(inner.keys().count(), 1);
        let error = inner.hold(std::future::pending::<()>()).await.unwrap_err();
        let LockError::Lost {
            key,
            fencing_token: fence,
            ..
        } = error
        else {
            panic!("{error}");
        };
        assert_eq!((key.as_str(), fence), ("key", outer.fencing_token()));
        drop(inner);
        settled(&locks).await;
        assert!(outer.is_held());
        contended(at_once(&others, "key")).await;
        // It may join again.
        let again = at_once(&locks, "key").reentrant().max_hold(LONG);
        assert!(again.acquire().await.unwrap().is_held());
    });
    within(TIME_LIMIT, work).await.unwrap();
    settled(&locks).await;
    take_turn(&others, "key").await;
}

async fn a_fixed_lease_that_joins_ends_at_its_ttl(store: Store) {
    let locks = store.manager().await;
    let work = at_once(&locks, "key").run(async |outer| {
        let inner = at_once(&locks, "key").reentrant().ttl(MOST).renew(false);
        let inner = inner.run(async |_| std::future::pending::<()>().await);
        let error = inner.await.unwrap_err();
        assert!(matches!(error, LockError::Lost { .. }), "{error}");
        assert!(outer.is_held());
    });
    within(TIME_LIMIT, work).await.unwrap();
}

#[distributed_lock(key = "key", ttl = "60s", reentrant = true, max_hold = "200ms")]
async fn endless() -> Result<(), LockError> {
    std::future::pending().await
}

async fn an_annotated_function_that_joins_is_stopped(store: Store) {
    let locks = store.manager().await;
    let work = at_once(&locks, "key").run(async |outer| {
        let error = locks.scope(endless()).await.unwrap_err();
        assert!(matches!(error, LockError::Lost { .. }), "{error}");
        assert!(outer.is_held());
    });
    within(TIME_LIMIT, work).await.unwrap();
}

async fn a_shorter_call_that_joins_notices_nothing(store: Store) {
    let locks = store.manager().await;
    let work = at_once(&locks, "key").run(async |outer| {
        let inner = at_once(&locks, "key").reentrant().max_hold(LONG);
        let inner = inner.run(async |inner| {
            assert!(inner.is_held());
            current().unwrap().keys().count()
        });
        assert_eq!(inner.await.unwrap(), 1);
        assert!(outer.is_held());
    });
    within(TIME_LIMIT, work).await.unwrap();
}

async fn the_limit_of_what_joins_ends_with_its_guard(store: Store) {
    let locks = store.manager().await;
    let work = at_once(&locks, "key").run(async |outer| {
        let inner = || at_once(&locks, "key").reentrant().max_hold(LONG);
        inner().acquire().await.unwrap().release();
        let confirmed = inner().acquire().await.unwrap().release_confirmed();
        assert!(confirmed.await.unwrap());
        settled(&locks).await;
        assert!(outer.is_held());
    });
    within(TIME_LIMIT, work).await.unwrap();
}

async fn what_joins_several_keys_names_the_last_of_them(store: Store) {
    let locks = store.manager().await;
    let all = || locks.lock_all(["a", "b"]).ttl(LONG).reentrant();
    let work = all().run(async |outer| {
        for joins in [all(), all().max_hold(LONG)] {
            let inner = joins.acquire().await.unwrap();
            assert_eq!(inner.key(), outer.key());
        }
    });
    within(TIME_LIMIT, work).await.unwrap();
}

async fn the_min_hold_of_what_joins_does_not_count(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let work = at_once(&locks, "key").run(async |_| {
        let inner = at_once(&locks, "key").reentrant().min_hold(LONG);
        release(inner.acquire().await.unwrap()).await;
    });
    within(TIME_LIMIT, work).await.unwrap();
    settled(&locks).await;
    take_turn(&others, "key").await;
}

async fn a_shutdown_does_not_wait_for_the_limit_of_what_joined(store: Store) {
    let locks = store.manager().await;
    let work = at_once(&locks, "key").run(async |_| {
        let inner = at_once(&locks, "key").reentrant().max_hold(LONG);
        drop(inner.acquire().await.unwrap());
    });
    within(TIME_LIMIT, work).await.unwrap();
    within(TIME_LIMIT / 4, locks.shutdown()).await;

    let locks = store.manager().await;
    let work = at_once(&locks, "key").run(async |_| {
        let inner = at_once(&locks, "key").reentrant().max_hold(LONG);
        inner.acquire().await.unwrap()
    });
    let outlives = within(TIME_LIMIT, work).await.unwrap();
    assert!(!outlives.is_held());
    within(TIME_LIMIT / 4, locks.shutdown()).await;
}
