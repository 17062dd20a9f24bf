//! Masters that fail, and masters that hand over.
//!
//! Section: guarantees.md#when-locks-move-in-a-cluster

use lock_runtime::LockError;
use tests::{
    ClusterFleet, LONG, Pulse, TIME_LIMIT, connect, granted, queue, release, take, take_turn,
    within, work,
};

use crate::{TTL, renewed};

#[tokio::test]
async fn holders_and_waiters_go_on_when_a_master_hands_over() {
    let fleet = ClusterFleet::start().await;
    let locks = connect(fleet.url()).await;
    let first = fleet.master_of("key").await;
    let holder = take(&locks, "key", TTL).await;
    let waiter = queue(&fleet.nodes()[first], &locks, "key", LONG, 1).await;
    let fence = holder.fencing_token();

    let second = fleet.hand_over(first).await;
    renewed(&holder).await;
    assert!(fleet.nodes()[second].owner("key").await.is_some());
    release(holder).await;
    let next = granted(TIME_LIMIT, waiter).await;
    assert!(next.fencing_token() > fence);
    release(next).await;
}

#[tokio::test]
async fn waiters_wait_on_when_a_master_dies() {
    let mut fleet = ClusterFleet::start().await;
    let locks = connect(format!("{}?unavailable_wait=20s", fleet.url())).await;
    let first = fleet.master_of("key").await;
    let holder = take(&locks, "key", LONG).await;
    let waiter = queue(&fleet.nodes()[first], &locks, "key", LONG, 1).await;
    fleet.node_mut(first).kill().await;
    fleet.take_over(first).await;
    release(holder).await;
    release(granted(TIME_LIMIT, waiter).await).await;
    take_turn(&locks, "key").await;
}

#[tokio::test]
async fn a_cluster_is_found_again_when_all_its_masters_are_replaced_at_once() {
    let mut fleet = ClusterFleet::start().await;
    let locks = connect(format!("{}?unavailable_wait=20s", fleet.url())).await;
    take_turn(&locks, "key").await;
    for master in 0..3 {
        fleet.node_mut(master).kill().await;
    }
    for master in 0..3 {
        fleet.take_over(master).await;
    }
    release(take(&locks, "key", TTL).await).await;
}

#[tokio::test]
async fn locks_of_other_masters_do_not_notice_that_one_dies() {
    let mut fleet = ClusterFleet::start().await;
    let locks = connect(fleet.url()).await;
    let first = fleet.master_of("key").await;
    let other = fleet.key_at((first + 1) % 3).await;
    let holder = take(&locks, &other, TTL).await;
    fleet.node_mut(first).kill().await;
    renewed(&holder).await;
    release(holder).await;
    take_turn(&locks, &*other).await;
}

#[tokio::test]
async fn a_holder_keeps_its_own_deadline_when_nobody_takes_the_place_of_its_master() {
    let mut fleet = ClusterFleet::start().await;
    let locks = connect(fleet.url()).await;
    let master = fleet.master_of("key").await;
    let replica = fleet.replica_of(master).await;
    let holder = take(&locks, "key", TTL).await;
    let pulse = Pulse::default();
    let body = work(holder, &pulse, LONG);
    pulse.reaches(1).await;
    fleet.node_mut(replica).kill().await;
    fleet.node_mut(master).kill().await;
    let ended = within(TIME_LIMIT, body).await.expect("no panic");
    assert!(matches!(ended, Err(LockError::Lost { .. })), "{ended:?}");
    assert_eq!(pulse.polls().late, 0);
}

#[tokio::test]
async fn a_lock_that_no_master_serves_is_unavailable_and_not_contended() {
    let mut fleet = ClusterFleet::start().await;
    let locks = connect(fleet.url()).await;
    let master = fleet.master_of("key").await;
    let replica = fleet.replica_of(master).await;
    fleet.node_mut(replica).kill().await;
    fleet.node_mut(master).kill().await;
    let refused = within(TIME_LIMIT, locks.lock("key").wait(TTL).acquire()).await;
    let error = refused.map(drop).expect_err("nobody serves it");
    assert!(matches!(error, LockError::Unavailable { .. }), "{error}");
    fleet.node_mut(master).restart().await;
    fleet.node_mut(replica).restart().await;
    fleet.settled().await;
    release(take(&locks, "key", TTL).await).await;
}
