//! `replicas`: what a node grants and renews counts once its own replicas have it.
//!
//! Section: guarantees.md#when-locks-move-in-a-cluster

use std::time::Duration;

use lock_runtime::{LockConfig, LockError};
use tests::{
    ClusterFleet, LONG, TIME_LIMIT, connect, eventually, granted, queue, release, take, within,
};

use crate::{TTL, renewed};

fn config(fleet: &ClusterFleet) -> LockConfig {
    let config = LockConfig::new(fleet.url()).expect("a URL").replicas(1);
    config.unavailable_wait(Duration::from_secs(1))
}

// Section: guarantees.md#when-a-replica-takes-over, guarantees.md#when-locks-move-in-a-cluster
#[tokio::test]
async fn a_grant_is_on_the_replica_of_its_node() {
    let fleet = ClusterFleet::start().await;
    let locks = connect(config(&fleet)).await;
    for number in 0..30 {
        let key = format!("key-{number}");
        let guard = take(&locks, &key, LONG).await;
        let replica = fleet.replica_of(fleet.master_of(&key).await).await;
        let owner = format!("lock:{{{key}}}");
        assert_eq!(fleet.nodes()[replica].keys(&owner).await, [owner]);
        release(guard).await;
    }
}

// Section: guarantees.md#when-a-replica-takes-over, guarantees.md#when-locks-move-in-a-cluster
#[tokio::test]
async fn a_node_without_its_replica_grants_and_hands_over_nothing() {
    let fleet = ClusterFleet::start().await;
    let locks = connect(config(&fleet)).await;
    let other = connect(config(&fleet).unavailable_wait_forever()).await;
    let node = fleet.master_of("first").await;
    let guard = take(&locks, "first", LONG).await;
    let waiter = queue(&fleet.nodes()[node], &other, "first", LONG, 1).await;
    let replica = &fleet.nodes()[fleet.replica_of(node).await];
    replica.stop();
    release(guard).await;
    fleet.nodes()[node].queued("first", 0).await;
    let second = Duration::from_secs(1);
    let tried = locks.lock("first").ttl(LONG).wait(second).acquire();
    let held = within(TIME_LIMIT, tried).await;
    assert!(held.is_err() && !waiter.is_finished(), "{held:?}");
    // Nobody has it or waits for it.
    let free = fleet.key_at(node).await;
    let tried = locks.lock(&free).ttl(LONG).wait(second).acquire();
    let held = within(TIME_LIMIT, tried).await;
    assert!(held.is_err(), "{held:?}");

    let elsewhere = fleet.key_at((node + 1) % 3).await;
    let guard = take(&locks, &elsewhere, LONG).await;
    release(guard).await;

    replica.resume();
    let guard = granted(TIME_LIMIT, waiter).await;
    release(guard).await;
}

// Section: guarantees.md#when-a-replica-takes-over, guarantees.md#when-locks-move-in-a-cluster
#[tokio::test]
async fn a_renewal_that_its_replica_does_not_have_is_none() {
    let fleet = ClusterFleet::start().await;
    let locks = connect(config(&fleet)).await;
    let guard = take(&locks, "key", Duration::from_secs(3)).await;
    let node = fleet.master_of("key").await;
    let replica = &fleet.nodes()[fleet.replica_of(node).await];
    replica.stop();
    let work = guard.hold(std::future::pending::<()>());
    let lost = within(TIME_LIMIT, work).await;
    assert!(matches!(lost, Err(LockError::Lost { .. })), "{lost:?}");
    replica.resume();
}

#[tokio::test]
async fn a_renewal_counts_in_every_stage_of_a_move() {
    let fleet = ClusterFleet::start().await;
    let locks = connect(config(&fleet)).await;
    let guard = take(&locks, "key", TTL).await;
    let slot = fleet.slot_of("key").await;
    let from = fleet.master_of("key").await;
    let to = (from + 1) % 3;
    fleet.begin_move(slot, to).await;
    renewed(&guard).await;
    fleet.move_keys(slot, from, to).await;
    renewed(&guard).await;
    fleet.end_move(slot, from, to).await;
    renewed(&guard).await;
    release(guard).await;
}

#[tokio::test]
async fn a_renewal_counts_on_a_node_that_has_no_slot_yet() {
    let mut fleet = ClusterFleet::start().await;
    let locks = connect(config(&fleet)).await;
    let holder = take(&locks, "key", TTL).await;
    let home = fleet.master_of("key").await;
    let slot = fleet.slot_of("key").await;
    let [guest, replica] = [fleet.add_node().await, fleet.add_node().await];
    let id = fleet.nodes()[guest].cmd(&["CLUSTER", "MYID"]).await;
    let id: String = redis::from_redis_value(id).expect("a name");
    let follows = async || {
        let follow = ["CLUSTER", "REPLICATE", &id];
        fleet.nodes()[replica].try_cmd(&follow).await.is_ok()
    };
    eventually(TIME_LIMIT, follows).await;
    let has_it = async || {
        let count = fleet.nodes()[guest].cmd(&["WAIT", "1", "100"]).await;
        count == redis::Value::Int(1)
    };
    eventually(TIME_LIMIT, has_it).await;
    fleet.begin_move(slot, guest).await;
    fleet.move_keys(slot, home, guest).await;
    // No list of slots names the guest: only `ASK` does.
    renewed(&holder).await;
    fleet.end_move(slot, home, guest).await;
    release(holder).await;
}
