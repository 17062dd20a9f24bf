//! Promise: the steps of ARCHITECTURE.md make a new store that locks.

use std::time::Duration;

use crate::api::config::LockConfig;
use crate::api::manager::LockManager;
use crate::base::clock::Clock;
use crate::types::error::LockError;

async fn connect(clock: &Clock) -> LockManager {
    let config = LockConfig::new("chalkboard:").expect("a store of tests");
    let locks = LockManager::connect(config.clock(clock.clone())).await;
    locks.expect("nothing to fail")
}

#[tokio::test]
async fn its_waiter_is_served_by_the_release() -> Result<(), LockError> {
    let locks = connect(&Clock::machine()).await;
    let first = locks.lock("k").acquire().await?;
    let contended = locks.lock("k").try_once().acquire().await;
    assert!(matches!(contended, Err(LockError::Contended { .. })));
    assert_eq!(locks.status("k").await?.holders.len(), 1);

    let fence = first.fencing_token();
    let release = async {
        while locks.status("k").await.is_ok_and(|it| it.waiting == 0) {
            tokio::task::yield_now().await;
        }
        drop(first);
    };
    let (second, ()) = tokio::join!(locks.lock("k").acquire(), release);
    assert!(second?.fencing_token() > fence);
    Ok(())
}

#[tokio::test]
async fn a_lease_that_ends_frees_its_lock() -> Result<(), LockError> {
    let clock = Clock::manual();
    let locks = connect(&clock).await;
    let crashed = locks.lock("k").renew(false).acquire().await?;
    let pass = async {
        while locks.status("k").await.is_ok_and(|it| it.waiting == 0) {
            tokio::task::yield_now().await;
        }
        clock.advance(Duration::from_secs(11));
    };
    let (next, ()) = tokio::join!(
        locks.lock("k").wait(Duration::from_secs(60)).acquire(),
        pass
    );
    assert!(next?.is_held() && !crashed.is_held());
    Ok(())
}

#[tokio::test]
async fn what_it_lacks_is_refused_before_it_is_asked() {
    let locks = connect(&Clock::machine()).await;
    let refused = locks.lock("k").read().acquire().await;
    assert!(matches!(refused, Err(LockError::InvalidOptions { .. })));
}
