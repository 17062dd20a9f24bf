//! Tokio's clock, paused or not, is the clock of the leases.

use std::time::{Duration, Instant};

use lock_runtime::LockError;
use lock_runtime::testing::Locks;
use tokio::time::{advance, sleep, timeout};

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test(start_paused = true)]
async fn a_wait_takes_no_real_time() -> Result<(), LockError> {
    let (start, began) = (Instant::now(), tokio::time::Instant::now());
    let locks = Locks::new();
    let _other = locks.hold("k").await?;
    for _ in 0..10 {
        let refused = locks.manager().lock("k").wait(MINUTE).acquire().await;
        assert!(matches!(refused, Err(LockError::Contended { .. })));
    }
    let passed = began.elapsed();
    assert!(passed >= 10 * MINUTE && passed < 11 * MINUTE, "{passed:?}");
    assert!(start.elapsed() < MINUTE / 6);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_timeout_around_a_free_lock_does_not_elapse() -> Result<(), LockError> {
    let locks = Locks::new();
    for _ in 0..100 {
        let free = timeout(
            Duration::from_millis(1),
            locks.manager().lock("k").acquire(),
        );
        let _guard = free.await.expect("the driver answers before time moves")?;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_renewed_while_time_passes_and_ends_where_it_jumps() -> Result<(), LockError> {
    let locks = Locks::new();
    let guard = locks.manager().lock("k").acquire().await?;
    sleep(60 * MINUTE).await;
    assert!(guard.is_held());
    advance(MINUTE).await;
    assert!(!guard.is_held());
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_test_that_ends_waits_for_nothing() -> Result<(), LockError> {
    let start = Instant::now();
    for _ in 0..20 {
        let locks = Locks::new();
        let guard = locks.manager().lock("k").acquire().await?;
        drop(locks);
        drop(guard);
    }
    assert!(
        start.elapsed() < Duration::from_secs(5),
        "a flush takes one"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn threads_and_a_running_clock_do_as_well() -> Result<(), LockError> {
    let locks = Locks::new();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let locks = locks.manager().clone();
        tasks.spawn(async move { locks.lock("k").wait(MINUTE).acquire().await });
    }
    while let Some(done) = tasks.join_next().await {
        done.expect("no panic")?.release_confirmed().await?;
    }
    assert_eq!(locks.history().len(), 100);
    Ok(())
}
