//! The record of what was taken and let go.

use lock_runtime::testing::{Event, Locks};
use lock_runtime::{LockError, LockManager};

fn acquired(key: &str) -> Event {
    Event::Acquired(key.parse().expect("a name"))
}

fn released(key: &str) -> Event {
    Event::Released(key.parse().expect("a name"))
}

#[tokio::test(start_paused = true)]
async fn every_key_is_recorded_in_order_and_once() -> Result<(), LockError> {
    let locks = Locks::new();
    let both = locks.manager().lock_all(["b", "a"]).acquire().await?;
    both.hold(async {
        let joined = locks.manager().lock("a").reentrant().acquire().await?;
        joined.release();
        Ok::<_, LockError>(())
    })
    .await??;
    both.release();
    assert_eq!(locks.history()[..2], [acquired("a"), acquired("b")]);
    assert_eq!(locks.history().len(), 4);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_guard_that_was_dropped_has_let_go_when_the_test_asks() -> Result<(), LockError> {
    let locks = Locks::new();
    let guard = locks.manager().lock("k").acquire().await?;
    assert!(locks.is_held("k"));
    drop(guard);
    assert!(!locks.is_held("k"));
    assert_eq!(locks.history(), [acquired("k"), released("k")]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn so_it_has_on_a_runtime_of_several_threads() -> Result<(), LockError> {
    let locks = Locks::new();
    let others = locks.manager().clone();
    let traffic = tokio::spawn(async move {
        loop {
            drop(others.lock("other").acquire().await);
        }
    });
    for _ in 0..2_000 {
        let guard = locks.manager().lock("k").acquire().await?;
        drop(guard);
        assert!(!locks.is_held("k"));
    }
    traffic.abort();
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_revoked_lock_is_lost_and_not_released() -> Result<(), LockError> {
    let locks = Locks::new();
    let guard = locks.manager().lock("k").acquire().await?;
    locks.manager().force_release("k").await?;
    guard.lost().await;
    drop(guard);
    assert!(!locks.is_held("k"));
    let lost = Event::Lost("k".parse().expect("a name"));
    assert_eq!(locks.history(), [acquired("k"), lost]);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn what_somebody_else_holds_is_not_recorded() -> Result<(), LockError> {
    let locks = Locks::new();
    let _other = locks.hold("k").await?;
    let tried = locks.manager().lock("k").try_once().acquire().await;
    let Err(LockError::Contended { holder, .. }) = tried else {
        panic!("it is held: {tried:?}");
    };
    let function = holder.and_then(|holder| holder.function);
    assert_eq!(function.as_deref(), Some("somebody_else"));
    assert!(!locks.is_held("k"));
    assert!(locks.history().is_empty());
    Ok(())
}

/// What is handed to the program under test is a manager as any other.
#[tokio::test(start_paused = true)]
async fn clones_are_managers_on_the_same_store() -> Result<(), LockError> {
    let locks = Locks::new();
    let manager: LockManager = locks.manager().clone();
    let guard = tokio::spawn(async move { manager.lock("k").acquire().await });
    let guard = guard.await.expect("no panic")?;
    assert!(locks.is_held("k"));
    drop(guard);
    Ok(())
}
