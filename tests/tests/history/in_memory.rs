//! In memory, where a test moves the clock.

use std::time::Duration;

use lock_runtime::inspect::GrantEnd;
use lock_runtime::{Clock, LockConfig};
use tests::connect;

use super::history;

#[tokio::test]
async fn a_lease_that_ends_is_remembered_as_expired() {
    let clock = Clock::manual();
    let config = LockConfig::new("memory:").unwrap().history(5);
    let locks = connect(config.clock(clock.clone())).await;
    let _crashed = locks.lock("k").renew(false).acquire().await.unwrap();
    clock.advance(Duration::from_secs(11));
    let _next = locks.lock("k").acquire().await.unwrap();
    let known = history(&locks, "k").await;
    assert_eq!(known[0].end, None);
    assert_eq!(known[1].end, Some(GrantEnd::Expired));
    assert_eq!(known[1].until, Some(known[0].since));
}

/// Each manager counts its acquisitions by itself.
#[tokio::test]
async fn managers_of_one_store_end_their_own_grants() {
    let clock = Clock::manual();
    let mut known = Vec::new();
    for _ in 0..2 {
        let config = LockConfig::new("memory:in-turn").unwrap().history(5);
        let locks = connect(config.clock(clock.clone())).await;
        let guard = locks.lock("k").acquire().await.unwrap();
        clock.advance(Duration::from_secs(1));
        assert!(guard.release_confirmed().await.unwrap());
        clock.advance(Duration::from_secs(1));
        known.push((history(&locks, "k").await, locks));
    }
    let [(before, _), (after, _)] = &known[..] else {
        panic!("two managers");
    };
    assert_eq!(after[1].until, before[0].until);
    assert!(after[1].until < Some(after[0].since));
}
