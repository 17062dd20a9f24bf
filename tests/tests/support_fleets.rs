//! Servers that fail over and shard do what the other tests build on.

use std::time::Duration;

use redis::Value;
use rustix::process::{Pid, test_kill_process};
use tests::{ClusterFleet, RedisServer, SentinelFleet, eventually, within};

const SOON: Duration = Duration::from_secs(10);

/// Long enough for a busy machine.
const SILENCE: Duration = Duration::from_secs(2);

async fn get(server: &RedisServer, key: &str) -> Value {
    server.cmd(&["GET", key]).await
}

#[tokio::test]
async fn sentinels_replace_a_master_on_demand() {
    let fleet = SentinelFleet::start().await;
    let first = fleet.master().await;
    let second = fleet.failover().await;
    assert_ne!(first, second);
    assert!(fleet.nodes()[second].is_master().await);
    fleet.settled().await;
    assert_eq!(fleet.master().await, second);
    assert!(!fleet.nodes()[first].is_master().await);
}

#[tokio::test]
async fn sentinels_replace_a_master_that_dies_or_stands_still() {
    let mut fleet = SentinelFleet::builder().down_after(SILENCE).start().await;
    let first = fleet.master().await;
    let mut switches = fleet.switches().await;
    fleet.node_mut(first).kill().await;
    let second = fleet.node_at(switches.next().await);
    assert_ne!(first, second);
    fleet.node_mut(first).restart().await;
    fleet.settled().await;

    let mut switches = fleet.switches().await;
    fleet.nodes()[second].stop();
    let third = fleet.node_at(switches.next().await);
    assert_ne!(third, second);
    fleet.nodes()[second].resume();
    fleet.settled().await;
}

#[tokio::test]
async fn a_master_cut_off_from_sentinels_goes_on_until_it_rejoins() {
    let fleet = SentinelFleet::builder().down_after(SILENCE).start().await;
    let first = fleet.master().await;
    let mut switches = fleet.switches().await;
    fleet.cut_off(first).await;
    let second = fleet.node_at(switches.next().await);
    let nodes = fleet.nodes();
    nodes[first].cmd(&["SET", "key", "old"]).await;
    nodes[second].cmd(&["SET", "key", "new"]).await;
    assert!(nodes[first].is_master().await && nodes[second].is_master().await);
    fleet.rejoin(first).await;
    fleet.settled().await;
    assert_eq!(
        get(&nodes[first], "key").await,
        get(&nodes[second], "key").await
    );
}

#[tokio::test]
async fn the_replica_of_a_cluster_takes_over_on_demand_or_when_its_master_dies() {
    let mut fleet = ClusterFleet::builder().node_timeout(SILENCE).start().await;
    let first = fleet.master_of("key").await;
    let second = fleet.hand_over(first).await;
    fleet.settled().await;
    assert_eq!(fleet.master_of("key").await, second);
    assert_eq!(fleet.take_over(second).await, first);
    fleet.settled().await;

    let dying = (first + 1) % 3;
    let heir = fleet.replica_of(dying).await;
    fleet.node_mut(dying).kill().await;
    fleet.promoted(heir).await;
    fleet.node_mut(dying).restart().await;
    fleet.settled().await;
    assert_eq!(fleet.replica_of(heir).await, dying);
}

#[tokio::test]
async fn a_slot_moves_with_its_keys() {
    let fleet = ClusterFleet::start().await;
    let from = fleet.master_of("{key}1").await;
    let to = (from + 1) % 3;
    let slot = fleet.slot_of("key").await;
    let nodes = fleet.nodes();
    nodes[from].cmd(&["SET", "{key}1", "value"]).await;

    assert_eq!(fleet.begin_move(slot, to).await, from);
    let absent = nodes[from].try_cmd(&["GET", "{key}2"]).await;
    assert_eq!(absent.expect_err("it may be there").code(), Some("ASK"));
    assert_eq!(fleet.move_keys(slot, from, to).await, 1);
    fleet.end_move(slot, from, to).await;
    assert_eq!(fleet.master_of("{key}1").await, to);
    assert_eq!(
        get(&nodes[to], "{key}1").await,
        Value::BulkString(b"value".to_vec())
    );
    let moved = nodes[from].try_cmd(&["GET", "{key}1"]).await;
    assert_eq!(moved.expect_err("moved").code(), Some("MOVED"));
    fleet.settled().await;
}

#[tokio::test]
async fn nodes_come_and_go() {
    let mut fleet = ClusterFleet::start().await;
    let number = fleet.add_node().await;
    let slot = fleet.slot_of("key").await;
    fleet.move_slot(slot, number).await;
    assert_eq!(fleet.master_of("key").await, number);
    fleet.nodes()[number].cmd(&["SET", "key", "value"]).await;
    fleet.move_slot(slot, 0).await;
    fleet.remove_node(number).await;
    fleet.settled().await;
}

#[tokio::test]
async fn a_master_of_a_cluster_that_is_cut_off_is_replaced_and_serves_clients_until_then() {
    let fleet = ClusterFleet::builder().node_timeout(SILENCE).start().await;
    let first = fleet.master_of("key").await;
    let second = fleet.replica_of(first).await;
    fleet.cut_off(first).await;
    fleet.nodes()[first].cmd(&["SET", "key", "old"]).await;
    fleet.promoted(second).await;
    let down = async || {
        let answer = fleet.nodes()[first].try_cmd(&["GET", "key"]).await;
        answer.is_err_and(|error| error.code() == Some("CLUSTERDOWN"))
    };
    eventually(SOON, down).await;
    fleet.rejoin(first).await;
    fleet.settled().await;
    assert_eq!(fleet.replica_of(second).await, first);
}

#[tokio::test]
async fn fleets_start_within_seconds_and_end_with_their_owner() {
    let (sentinels, cluster) = tokio::join!(
        within(SOON, SentinelFleet::start()),
        within(SOON, ClusterFleet::start()),
    );
    let nodes = sentinels.nodes().iter().chain(sentinels.sentinels());
    let pids: Vec<u32> = nodes.chain(cluster.nodes()).map(RedisServer::pid).collect();
    drop((sentinels, cluster));
    for pid in pids {
        let pid = Pid::from_raw(pid.cast_signed()).expect("not 0");
        assert!(
            test_kill_process(pid).is_err(),
            "a server outlived its owner"
        );
    }
}
