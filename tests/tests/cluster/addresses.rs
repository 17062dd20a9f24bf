//! Which URLs name a cluster, and what is said of those that do not.
//!
//! Section: cluster.md#cluster

use lock_runtime::{LockConfig, LockError, LockManager};
use tests::{
    ClusterFleet, RedisServer, TIME_LIMIT, connect, granted, queue, release, take, take_turn,
    within,
};

use crate::{TTL, renewed};

async fn refused(url: &str) -> String {
    let config = LockConfig::new(url).expect("a URL");
    let connected = within(TIME_LIMIT, LockManager::connect(config)).await;
    let error = connected.map(drop).expect_err("it does not fit");
    let LockError::InvalidOptions { .. } = error else {
        panic!("{error}");
    };
    error.to_string()
}

#[tokio::test]
async fn one_node_that_answers_is_enough_even_a_replica() {
    let mut fleet = ClusterFleet::start().await;
    let addresses: Vec<_> = fleet.nodes().iter().map(RedisServer::addr).collect();
    let alone = RedisServer::start().await;
    let dead = alone.addr();
    drop(alone);
    let replica = fleet.replica_of(0).await;
    for url in [
        format!("redis+cluster://{}", addresses[1]),
        format!("redis+cluster://{}", addresses[replica]),
        format!("redis+cluster://{dead},{}", addresses[2]),
    ] {
        let locks = connect(&*url).await;
        for number in 0..10 {
            take_turn(&locks, format!("key-{number}")).await;
        }
    }
    fleet.node_mut(replica).kill().await;
}

#[tokio::test]
async fn a_cluster_is_not_taken_for_one_server_nor_one_server_for_a_cluster() {
    let fleet = ClusterFleet::start().await;
    let said = refused(&format!("redis://{}", fleet.nodes()[0].addr())).await;
    assert!(said.contains("redis+cluster://"), "{said}");
    let alone = RedisServer::start().await;
    let said = refused(&format!("redis+cluster://{}", alone.addr())).await;
    assert!(said.contains("not part of a cluster"), "{said}");
}

#[tokio::test]
async fn the_documented_rights_are_enough() {
    let fleet = ClusterFleet::start().await;
    let rights = "ACL SETUSER locks on >secret resetkeys ~lock:* resetchannels &lock:grant:* &lock:all:* -@all \
        +subscribe +publish +eval +evalsha +get +set +del +exists +pexpire +pttl +time +zadd +zpopmin +zrem +zscore \
        +zrange +zcard +zcount +zremrangebyscore +scan +cluster|slots +cluster|myid +asking";
    let rights: Vec<_> = rights.split_whitespace().collect();
    for node in fleet.nodes() {
        node.cmd(&rights).await;
    }
    let url = fleet.url().replace("//", "//locks:secret@");
    let locks = connect(format!("{url}?ttl=2s")).await;
    let holder = take(&locks, "key", TTL).await;
    let from = fleet.master_of("key").await;
    let waiter = queue(&fleet.nodes()[from], &locks, "key", TTL, 1).await;
    let slot = fleet.slot_of("key").await;
    let to = (from + 1) % 3;
    fleet.begin_move(slot, to).await;
    fleet.move_keys(slot, from, to).await;
    renewed(&holder).await;
    fleet.end_move(slot, from, to).await;
    release(holder).await;
    release(granted(TIME_LIMIT, waiter).await).await;
    within(TIME_LIMIT, locks.list("*")).await.expect("a list");
}

// Section: guarantees.md#when-locks-move-in-a-cluster
#[tokio::test]
async fn nodes_that_do_not_tell_their_hosts_are_found() {
    let fleet = ClusterFleet::builder()
        .option("cluster-preferred-endpoint-type", "unknown-endpoint")
        .start()
        .await;
    let locks = connect(fleet.url()).await;
    let slot = fleet.slot_of("key").await;
    take_turn(&locks, "key").await;
    for _ in 0..2 {
        let to = (fleet.master_of("key").await + 1) % 3;
        fleet.move_slot(slot, to).await;
        // `MOVED` names an empty host.
        take_turn(&locks, "key").await;
    }
}
