//! Managers: shutting one down, and choosing one for a scope.

use std::time::Duration;

use lock_runtime::{LockError, distributed_lock};
use tests::{LONG, Store, TIME_LIMIT, connect, on_every_store, poll_once, queued, settled, within};
use tokio::task::yield_now;

on_every_store! {
    a_shutdown_takes_no_new_locks_and_lets_work_go_on,
    a_shutdown_stops_what_is_held_after_its_grace,
    a_shutdown_leaves_other_managers_alone,
    a_scope_chooses_the_manager,
    scopes_nest_and_do_not_leak,
}

async fn a_shutdown_takes_no_new_locks_and_lets_work_go_on(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    // Short enough to need renewal while the shutdown waits for it.
    let ttl = Duration::from_secs(1);
    let guard = locks.lock("ours").ttl(ttl).acquire().await.unwrap();
    let _theirs = others.lock("theirs").ttl(LONG).acquire().await.unwrap();
    let waiter = queued(&locks, locks.lock("theirs").wait_forever()).await;

    let mut shutdown = Box::pin(locks.shutdown());
    assert!(poll_once(&mut shutdown).await.is_pending());
    let error = within(TIME_LIMIT, waiter).await.unwrap_err();
    assert!(matches!(error, LockError::ShutDown), "{error}");
    let error = within(TIME_LIMIT, locks.lock("new").acquire())
        .await
        .unwrap_err();
    assert!(matches!(error, LockError::ShutDown), "{error}");

    let work = guard.hold(async {
        tokio::time::sleep(2 * ttl).await;
        "done"
    });
    assert_eq!(within(TIME_LIMIT, work).await.unwrap(), "done");
    assert!(poll_once(&mut shutdown).await.is_pending());
    guard.release();
    within(TIME_LIMIT, shutdown).await;

    let next = others.lock("ours").wait(Duration::ZERO).acquire();
    assert!(within(TIME_LIMIT, next).await.is_ok(), "not released");
    // Late calls are answered, too.
    let error = within(TIME_LIMIT, locks.lock("new").acquire())
        .await
        .unwrap_err();
    assert!(matches!(error, LockError::ShutDown), "{error}");
    within(TIME_LIMIT, locks.shutdown()).await;
}

async fn a_shutdown_stops_what_is_held_after_its_grace(store: Store) {
    let config = store.config().shutdown_grace(Duration::from_millis(300));
    let locks = connect(config).await;
    let guard = locks.lock("key").ttl(LONG).acquire().await.unwrap();
    let work = guard.hold(std::future::pending::<()>());
    let ((), outcome) = within(TIME_LIMIT, async { tokio::join!(locks.shutdown(), work) }).await;
    let error = outcome.unwrap_err();
    assert!(matches!(error, LockError::Lost { .. }), "{error}");
    assert_eq!(store.traces().await, [""; 0]);
}

async fn a_shutdown_leaves_other_managers_alone(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let guard = others.lock("key").ttl(LONG).acquire().await.unwrap();
    within(TIME_LIMIT, locks.shutdown()).await;
    settled(&others).await;
    assert!(guard.is_held());
    assert!(within(TIME_LIMIT, guard.release_confirmed()).await.unwrap());
}

/// Uses the manager of its scope; none is installed in this program.
#[distributed_lock(key = "scope:{name}", ttl = "60s", wait = "0s")]
async fn locked(name: &str) -> Result<&'static str, LockError> {
    yield_now().await;
    Ok("ran")
}

async fn a_scope_chooses_the_manager(store: Store) {
    let locks = store.manager().await;
    let error = locked("a").await.unwrap_err();
    assert!(matches!(error, LockError::NotConfigured), "{error}");
    assert_eq!(
        within(TIME_LIMIT, locks.scope(locked("a"))).await.unwrap(),
        "ran"
    );

    let _guard = locks.lock("scope:a").ttl(LONG).acquire().await.unwrap();
    let error = within(TIME_LIMIT, locks.scope(locked("a")))
        .await
        .unwrap_err();
    assert!(matches!(error, LockError::Contended { .. }), "{error}");
}

async fn scopes_nest_and_do_not_leak(store: Store) {
    let outer = store.manager().await;
    let inner = connect("memory:").await;
    let _guard = outer.lock("scope:a").ttl(LONG).acquire().await.unwrap();

    let nested = outer.scope(async {
        assert!(locked("a").await.is_err());
        inner
            .scope(async {
                assert!(locked("a").await.is_ok());
                yield_now().await;
                assert!(locked("a").await.is_ok());
            })
            .await;
        assert!(locked("a").await.is_err());
    });
    // Taking turns with futures of other scopes, and of none.
    let beside = inner.scope(async {
        for _ in 0..10 {
            assert!(locked("b").await.is_ok());
        }
    });
    let outside = async {
        for _ in 0..10 {
            assert!(matches!(locked("a").await, Err(LockError::NotConfigured)));
            yield_now().await;
        }
    };
    within(TIME_LIMIT, async { tokio::join!(nested, beside, outside) }).await;
    assert!(matches!(locked("a").await, Err(LockError::NotConfigured)));
}
