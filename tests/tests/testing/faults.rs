//! What a test breaks fails as a server does, and is whole again when the test says so.

use std::future::pending;
use std::time::Duration;

use lock_runtime::testing::Locks;
use lock_runtime::{LockError, LockGuard};
use tokio::join;
use tokio::time::{Instant, sleep};

const SECOND: Duration = Duration::from_secs(1);

fn is_unavailable<T>(result: &Result<T, LockError>) -> bool {
    matches!(result, Err(LockError::Unavailable { .. }))
}

#[tokio::test(start_paused = true)]
async fn every_call_fails_while_the_connection_is_cut() -> Result<(), LockError> {
    let locks = Locks::new();
    let guard = locks.manager().lock("held").acquire().await?;
    locks.disconnect();
    assert!(is_unavailable(&locks.manager().lock("k").acquire().await));
    assert!(is_unavailable(
        &locks.manager().lock("k").try_once().acquire().await
    ));
    assert!(is_unavailable(&locks.manager().status("k").await));
    assert!(is_unavailable(&LockGuard::release_confirmed(guard).await));

    locks.reconnect();
    let _free = locks.manager().lock("k").acquire().await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn what_was_let_go_while_the_connection_was_cut_is_free_when_it_is_back()
-> Result<(), LockError> {
    let locks = Locks::new();
    let kept = locks.manager().lock("released").acquire().await?;
    let issued = locks.manager().lock("issued").acquire().await?;
    locks.disconnect();
    drop(kept);
    assert!(is_unavailable(&issued.into_ticket(60 * SECOND).await));
    locks.reconnect();
    for key in ["released", "issued"] {
        let request = locks.manager().lock(key).wait(SECOND);
        let _guard = request.acquire().await?;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_fails_when_the_connection_is_cut() -> Result<(), LockError> {
    let locks = Locks::new();
    let other = locks.hold("k").await?;
    let cut = async {
        sleep(SECOND).await;
        locks.disconnect();
        drop(other);
    };
    let (refused, ()) = join!(locks.manager().lock("k").wait(2 * SECOND).acquire(), cut);
    assert!(is_unavailable(&refused));
    assert_eq!(locks.history(), []);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_goes_on_when_the_connection_is_back() -> Result<(), LockError> {
    let locks = Locks::new();
    let other = locks.hold("k").await?;
    let repair = async {
        sleep(SECOND).await;
        locks.disconnect();
        sleep(SECOND).await;
        drop(other);
        locks.reconnect();
    };
    let (guard, ()) = join!(locks.manager().lock("k").acquire(), repair);
    assert!(guard?.is_held());
    assert_eq!(locks.manager().status("k").await?.waiting, 0);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_lease_ends_while_the_connection_is_cut_and_not_before() -> Result<(), LockError> {
    let locks = Locks::new();
    let guard = locks.manager().lock("k").ttl(10 * SECOND).acquire().await?;
    let start = Instant::now();
    sleep(SECOND).await;
    locks.disconnect();
    sleep(5 * SECOND).await;
    assert!(guard.is_held());
    let lost = guard.hold(pending::<()>()).await;
    assert!(matches!(lost, Err(LockError::Lost { .. })));
    assert!(start.elapsed() < 10 * SECOND, "{:?}", start.elapsed());
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_short_interruption_costs_no_lock() -> Result<(), LockError> {
    let locks = Locks::new();
    let guard = locks.manager().lock("k").ttl(10 * SECOND).acquire().await?;
    let interruption = async {
        locks.disconnect();
        sleep(5 * SECOND).await;
        locks.reconnect();
    };
    let (work, ()) = join!(guard.hold(sleep(60 * SECOND)), interruption);
    work
}

#[tokio::test(start_paused = true)]
async fn each_request_is_on_the_way_for_the_delay() -> Result<(), LockError> {
    let locks = Locks::new();
    locks.delay(SECOND / 4);
    let start = Instant::now();
    let guard = locks.manager().lock("k").acquire().await?;
    assert!(start.elapsed() >= SECOND / 4);
    guard.release_confirmed().await?;
    assert!(start.elapsed() >= SECOND / 2);

    locks.delay(10 * SECOND);
    assert!(is_unavailable(
        &locks.manager().lock("k").try_once().acquire().await
    ));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn who_is_taken_a_lock_away_loses_it_at_once() -> Result<(), LockError> {
    let locks = Locks::new();
    let guard = locks.manager().lock("k").acquire().await?;
    let revoke = async {
        sleep(SECOND).await;
        locks.manager().force_release("k").await
    };
    let (lost, taken) = join!(guard.hold(pending::<()>()), revoke);
    assert_eq!(taken?, 1);
    assert!(matches!(lost, Err(LockError::Lost { .. })));
    Ok(())
}

/// It would wait for the runtime whose thread it blocks.
#[tokio::test(start_paused = true)]
async fn blocking_calls_are_refused() {
    let locks = Locks::new();
    let refused = locks.manager().lock("k").acquire_blocking();
    assert!(matches!(refused, Err(LockError::InvalidOptions { .. })));
}
