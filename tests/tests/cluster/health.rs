//! What a readiness probe hears of a cluster of which a part is gone.
//!
//! Section: guarantees.md#watching-a-lock

use std::time::Duration;

use lock_runtime::{LockError, LockManager};
use tests::{ClusterFleet, TIME_LIMIT, connect, eventually, take_turn, within};

/// How many requests are made at once.
const REQUESTS: usize = 50;

/// As the recipe of a service answers its probes.
async fn ready(locks: &LockManager) -> u16 {
    if locks.health().await.grants {
        200
    } else {
        503
    }
}

/// As a service answers a request.
async fn status(locks: &LockManager, key: &str) -> u16 {
    match locks.lock(key).wait(TIME_LIMIT).acquire().await {
        Ok(_guard) => 200,
        Err(LockError::Unavailable { .. }) => 503,
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn a_process_is_ready_while_some_masters_serve() {
    let fleet = ClusterFleet::builder().option("cluster-require-full-coverage", "no");
    let mut fleet = fleet.start().await;
    let locks = connect(format!("{}?unavailable_wait=200ms", fleet.url())).await;
    let whole = locks.health().await;
    assert!(whole.connected && whole.grants, "{whole:?}");
    assert_eq!((whole.reachable, whole.servers), (3, 3));

    let (gone, stays) = (fleet.key_at(0).await, fleet.key_at(1).await);
    take_turn(&locks, &gone).await;
    let mut requests = tokio::task::JoinSet::new();
    fleet.node_mut(0).kill().await;
    for number in 0..REQUESTS {
        let (locks, is_gone) = (locks.clone(), number % 2 == 0);
        let key = if is_gone { gone.clone() } else { stays.clone() };
        requests.spawn(async move { (is_gone, status(&locks, &key).await) });
    }
    let in_part = async || locks.health().await.reachable == 2;
    eventually(TIME_LIMIT, in_part).await;
    let health = locks.health().await;
    assert!(health.connected && health.grants, "{health:?}");
    assert_eq!(health.servers, 3);
    assert!(
        health.last_error.is_some() && health.round_trip.is_some(),
        "{health:?}"
    );
    assert_eq!(ready(&locks).await, 200);
    for (is_gone, status) in within(TIME_LIMIT, requests.join_all()).await {
        assert_eq!(status, if is_gone { 503 } else { 200 });
    }
    assert_eq!(ready(&locks).await, 200);
}

#[tokio::test]
async fn a_process_that_starts_while_a_master_is_gone_serves_the_others() {
    let fleet = ClusterFleet::builder().option("cluster-require-full-coverage", "no");
    let mut fleet = fleet.start().await;
    let (gone, stays) = (fleet.key_at(0).await, fleet.key_at(1).await);
    let url = format!("{}?unavailable_wait=200ms&connect_timeout=1s", fleet.url());
    fleet.node_mut(0).kill().await;
    let starts = async {
        loop {
            if let Ok(locks) = LockManager::connect(&url).await {
                break locks;
            }
        }
    };
    let locks = within(TIME_LIMIT, starts).await;
    eventually(TIME_LIMIT, async || ready(&locks).await == 200).await;
    eventually(TIME_LIMIT, async || status(&locks, &stays).await == 200).await;
    assert_eq!(status(&locks, &gone).await, 503);
}

#[tokio::test]
async fn a_cluster_that_serves_nothing_as_long_as_a_master_is_gone_is_not_ready() {
    let fleet = ClusterFleet::builder().node_timeout(Duration::from_secs(1));
    // Its replica does not replace it.
    let fleet = fleet.option("cluster-replica-no-failover", "yes");
    let mut fleet = fleet.start().await;
    let locks = connect(fleet.url()).await;
    assert_eq!(ready(&locks).await, 200);
    fleet.node_mut(0).kill().await;
    eventually(TIME_LIMIT, async || ready(&locks).await == 503).await;
    let health = locks.health().await;
    assert!(
        health.connected && health.reachable < health.servers,
        "{health:?}"
    );
}
