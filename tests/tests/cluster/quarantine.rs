//! `quarantine` on a cluster: what a node may have forgotten is granted on none of its slots.
//!
//! Section: guarantees.md#when-locks-move-in-a-cluster

use std::time::{Duration, Instant};

use lock_runtime::{LockConfig, LockError, LockGuard, LockManager};
use tests::{
    ClusterFleet, RedisServer, TIME_LIMIT, connect, eventually, granted, queue, release, take,
    within,
};

use crate::renewed;

/// The longest lease in these tests.
const LONGEST: Duration = Duration::from_secs(2);

/// Masters that have run for longer than any lease, and count a second of lag.
async fn old_fleet() -> (ClusterFleet, LockManager) {
    let fleet = ClusterFleet::builder()
        .option("min-replicas-max-lag", "1")
        .start()
        .await;
    let locks = connect(config(&fleet)).await;
    for node in 0..3 {
        release(take_when_granted(&locks, &fleet.key_at(node).await).await).await;
    }
    (fleet, locks)
}

/// What a master has not heard of when it takes over.
async fn forget(fleet: &ClusterFleet, master: usize) {
    let key = RedisServer::owner_key("key");
    fleet.nodes()[master].cmd(&["DEL", &key]).await;
}

/// Waits for as long as it takes.
fn config(fleet: &ClusterFleet) -> LockConfig {
    let config = LockConfig::new(fleet.url()).expect("a URL");
    let config = config.quarantine(LONGEST).ttl(LONGEST);
    config.unavailable_wait_forever()
}

async fn take_when_granted(locks: &LockManager, key: &str) -> LockGuard {
    let acquire = locks.lock(key).wait(TIME_LIMIT).acquire();
    within(TIME_LIMIT, acquire).await.expect("in time")
}

/// Tries until the error gives the reason, which earlier errors may not.
async fn refused(locks: &LockManager, key: &str) {
    let is_reported = async || {
        let tried = locks.lock(key).wait(Duration::ZERO).acquire().await;
        match tried {
            Err(error @ LockError::Unavailable { .. }) => {
                error.to_string().contains("no lock is granted until")
            }
            other => panic!("{other:?}"),
        }
    };
    eventually(TIME_LIMIT, is_reported).await;
}

#[tokio::test]
async fn a_node_that_takes_over_grants_nothing_until_all_leases_have_ended() {
    let (mut fleet, locks) = old_fleet().await;
    let first = fleet.master_of("key").await;
    let other = fleet.key_at((first + 1) % 3).await;
    let guard = take(&locks, "key", LONGEST).await;
    fleet.node_mut(first).kill().await;
    let start = Instant::now();
    let second = fleet.take_over(first).await;
    forget(&fleet, second).await;
    let next = connect(config(&fleet)).await;
    refused(&next, "key").await;
    // The other nodes have forgotten nothing.
    release(take(&next, &other, LONGEST).await).await;
    release(take(&locks, &other, LONGEST).await).await;
    let next = take_when_granted(&next, "key").await;
    assert!(!guard.is_held(), "two holders");
    assert!(start.elapsed() > LONGEST, "the lag comes on top");
    release(next).await;
    // Nobody waits twice.
    let again = connect(config(&fleet)).await;
    release(take(&again, "key", LONGEST).await).await;
}

#[tokio::test]
async fn a_node_that_restarts_without_its_data_makes_no_second_holder() {
    let (mut fleet, locks) = old_fleet().await;
    let node = fleet.master_of("key").await;
    let guard = take(&locks, "key", LONGEST).await;
    fleet.node_mut(node).restart().await;
    let next = connect(config(&fleet)).await;
    let next = take_when_granted(&next, "key").await;
    assert!(!guard.is_held(), "two holders");
    release(next).await;
}

#[tokio::test]
async fn what_is_held_is_renewed_and_what_is_released_is_not_handed_over() {
    let (fleet, locks) = old_fleet().await;
    let other = connect(config(&fleet)).await;
    let first = fleet.master_of("key").await;
    let guard = take(&locks, "key", LONGEST).await;
    let waiter = queue(&fleet.nodes()[first], &other, "key", LONGEST, 1).await;
    fleet.hand_over(first).await;
    let start = Instant::now();
    renewed(&guard).await;
    let forced = locks.force_release("key").await;
    assert!(
        matches!(forced, Err(LockError::Unavailable { .. })),
        "{forced:?}"
    );
    release(guard).await;
    let next = granted(TIME_LIMIT, waiter).await;
    assert!(start.elapsed() > LONGEST, "{:?}", start.elapsed());
    release(next).await;
}

#[tokio::test]
async fn a_master_that_was_a_replica_for_a_while_makes_no_second_holder() {
    let (fleet, locks) = old_fleet().await;
    let first = fleet.master_of("key").await;
    let holder = connect(config(&fleet)).await;
    let guard = take(&holder, "key", LONGEST).await;
    let second = fleet.take_over(first).await;
    fleet.settled().await;
    forget(&fleet, second).await;
    fleet.settled().await;
    assert_eq!(fleet.take_over(second).await, first);
    eventually(TIME_LIMIT, async || {
        !fleet.nodes()[second].is_master().await
    })
    .await;
    // Its connection has been open and silent all the time.
    refused(&locks, "key").await;
    let next = take_when_granted(&locks, "key").await;
    assert!(!guard.is_held(), "two holders");
    release(next).await;
}

#[tokio::test]
async fn a_slot_that_leaves_a_node_in_quarantine_stays_closed() {
    let (fleet, locks) = old_fleet().await;
    let first = fleet.master_of("key").await;
    let target = (first + 1) % 3;
    let other = fleet.key_at(target).await;
    let second = fleet.hand_over(first).await;
    eventually(TIME_LIMIT, async || fleet.master_of("key").await == second).await;
    refused(&locks, "key").await;
    fleet.move_slot(fleet.slot_of("key").await, target).await;
    // Asked for its state, the lock leads to where it is now.
    within(TIME_LIMIT, locks.status("key"))
        .await
        .expect("a status");
    refused(&locks, "key").await;
    release(take(&locks, &other, LONGEST).await).await;
    release(take_when_granted(&locks, "key").await).await;
}

#[tokio::test]
async fn a_slot_that_moves_takes_its_leases_along_and_is_granted_at_once() {
    let (mut fleet, locks) = old_fleet().await;
    let home = fleet.master_of("key").await;
    let slot = fleet.slot_of("key").await;
    let guard = take(&locks, "key", LONGEST).await;
    let guest = fleet.add_node().await;
    fleet.begin_move(slot, guest).await;
    fleet.move_keys(slot, home, guest).await;
    // It is met while it has no slots.
    renewed(&guard).await;
    fleet.end_move(slot, home, guest).await;
    release(guard).await;
    release(take(&locks, "key", LONGEST).await).await;
}

#[tokio::test]
async fn a_node_is_connected_to_while_the_slot_of_its_note_moves() {
    let (fleet, _locks) = old_fleet().await;
    // A node's notes are in its outer slots.
    let (slot, to) = (16_383, 0);
    let from = fleet.begin_move(slot, to).await;
    assert!(fleet.move_keys(slot, from, to).await > 0);
    let key = fleet.key_at(from).await;
    let next = connect(config(&fleet)).await;
    release(take(&next, &key, LONGEST).await).await;
    fleet.end_move(slot, from, to).await;
    release(take(&next, &key, LONGEST).await).await;
}

#[tokio::test]
async fn a_node_whose_outer_slot_has_left_is_not_taken_for_another_one() {
    let (fleet, locks) = old_fleet().await;
    // It has the last slot of all.
    let second = fleet.hand_over(2).await;
    let key = fleet.key_at(second).await;
    release(take_when_granted(&locks, &key).await).await;
    fleet.move_slot(16_383, 0).await;
    let key = fleet.key_at(second).await;
    let next = connect(config(&fleet)).await;
    let tried = next.lock(&key).wait(Duration::ZERO).acquire();
    release(
        within(TIME_LIMIT, tried)
            .await
            .expect("it has forgotten nothing"),
    )
    .await;
}
