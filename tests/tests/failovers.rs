//! Promise: a lock that replicas have, or whose store is quarantined, has one holder over failovers; slots may move
//! under locks.
//!
//! `make failovers` does it for longer.
//!
//! Section: guarantees.md#when-a-replica-takes-over

use tests::{
    failovers::{move_slots, replace_masters},
    torture::{Protection, Servers},
};

#[tokio::test]
async fn replicas_know_what_a_master_behind_sentinels_granted() {
    let seen = replace_masters(Servers::Sentinel, Protection::Replicas, 4).await;
    assert!(seen.granted > 0 && seen.doubles == 0, "{seen:?}");
}

#[tokio::test]
async fn replicas_know_what_a_master_of_a_cluster_granted() {
    let seen = replace_masters(Servers::Cluster, Protection::Replicas, 4).await;
    assert!(seen.granted > 0 && seen.doubles == 0, "{seen:?}");
}

#[tokio::test]
async fn a_new_master_in_quarantine_grants_nothing_again() {
    let seen = replace_masters(Servers::Sentinel, Protection::Quarantine, 3).await;
    assert!(seen.granted > 0 && seen.doubles == 0, "{seen:?}");
}

/// Else the others would show nothing.
#[tokio::test]
async fn a_failover_that_nothing_protects_grants_locks_again() {
    let seen = replace_masters(Servers::Sentinel, Protection::None, 3).await;
    assert!(seen.doubles > 0, "{seen:?}");
}

#[tokio::test]
async fn slots_move_under_locks() {
    let seen = move_slots(6).await;
    assert_eq!(seen.violations, [""; 0]);
    assert!(seen.grants > 0 && seen.keys > 0, "{seen:?}");
}
