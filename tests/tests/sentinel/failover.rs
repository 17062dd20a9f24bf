//! A failover: what becomes of those who hold a lock, wait for one, and release one.
//!
//! Section: guarantees.md#when-a-replica-takes-over

use std::time::Duration;

use tests::{
    LONG, RedisServer, SentinelFleet, TIME_LIMIT, connect, eventually, granted, queue, release,
    settled, take, take_turn, unique, within,
};

use crate::{FAILED_OVER, config, left, master, replicated, watchful};

#[tokio::test]
async fn a_holder_keeps_its_lock() {
    let mut fleet = watchful().await;
    let locks = connect(config(fleet.url())).await;
    let key = unique("held");
    // A failover may take several attempts.
    let ttl = Duration::from_secs(12);
    let guard = take(&locks, &key, ttl).await;
    replicated(&fleet).await;
    let mut switches = fleet.switches().await;
    let first = fleet.master().await;
    fleet.node_mut(first).kill().await;
    switches.next().await;
    // Longer than the lease that it had before.
    let work = guard.hold(tokio::time::sleep(ttl + ttl / 4));
    within(LONG, work).await.expect("it is renewed there");
    let owner = format!("lock:{{{key}}}");
    assert_eq!(master(&fleet).await.keys(&owner).await, [owner]);
    release(guard).await;
}

#[tokio::test]
async fn waiters_keep_their_positions() {
    let fleet = SentinelFleet::start().await;
    let locks = connect(config(fleet.url())).await;
    let key = unique("queue");
    let guard = take(&locks, &key, LONG).await;
    let first = &fleet.nodes()[fleet.master().await];
    let mut waiters = Vec::new();
    for position in 1..=3 {
        let other = connect(config(fleet.url())).await;
        let waiter = queue(first, &other, &key, LONG, position).await;
        waiters.push((other, waiter));
    }
    replicated(&fleet).await;
    let second = fleet.failover().await;
    left(first).await;
    // A waiter that does not listen there yet when its turn comes is passed over.
    let everybody = async || fleet.nodes()[second].listeners().await == waiters.len() + 1;
    eventually(FAILED_OVER, everybody).await;
    release(guard).await;
    let mut fences = Vec::new();
    for (_locks, waiter) in waiters {
        let guard = granted(FAILED_OVER, waiter).await;
        fences.push(guard.fencing_token());
        release(guard).await;
    }
    assert!(fences.is_sorted(), "{fences:?}");
}

#[tokio::test]
async fn a_release_under_way_reaches_the_new_master() {
    let fleet = watchful().await;
    let locks = connect(config(fleet.url())).await;
    let key = unique("released");
    let guard = take(&locks, &key, LONG).await;
    replicated(&fleet).await;
    let mut switches = fleet.switches().await;
    let first = fleet.master().await;
    fleet.nodes()[first].stop();
    let releasing = tokio::spawn(guard.release_confirmed());
    let second = fleet.node_at(switches.next().await);
    let released = within(FAILED_OVER, releasing).await.expect("no panic");
    assert!(released.expect("an answer"), "it was ours there, too");
    assert_eq!(fleet.nodes()[second].keys("lock:{*").await, [""; 0]);
    fleet.nodes()[first].resume();
}

#[tokio::test]
async fn a_master_that_still_answers_is_left_at_once() {
    let fleet = watchful().await;
    let locks = connect(config(fleet.url())).await;
    let first = fleet.master().await;
    let mut switches = fleet.switches().await;
    fleet.cut_off(first).await;
    let second = fleet.node_at(switches.next().await);
    let (old, new) = (&fleet.nodes()[first], &fleet.nodes()[second]);
    left(old).await;
    assert!(old.is_master().await, "nobody has demoted it");
    let guard = take(&locks, &unique("key"), LONG).await;
    assert_eq!(old.keys("lock:{*").await, [""; 0]);
    assert_eq!(new.keys("lock:{*").await.len(), 1);
    release(guard).await;
}

#[tokio::test]
async fn fences_grow_over_failovers() {
    let fleet = SentinelFleet::start().await;
    let locks = connect(config(fleet.url())).await;
    let mut last = 0;
    for _ in 0..3 {
        let first = fleet.master().await;
        // What comes now is not on the replica that takes over.
        fleet.cut_off(first).await;
        for _ in 0..5 {
            let fence = take_turn(&locks, "key").await;
            assert!(fence > last, "{fence} after {last}");
            last = fence;
        }
        let lagging = &fleet.nodes()[(first + 1) % fleet.nodes().len()];
        assert!(counter(lagging).await < last, "the replica lags");
        fleet.failover().await;
        left(&fleet.nodes()[first]).await;
        fleet.rejoin(first).await;
        fleet.settled().await;
        within(TIME_LIMIT, settled(&locks)).await;
    }
}

/// The counter that fencing tokens are taken from, as far as a server knows it.
async fn counter(server: &RedisServer) -> u64 {
    let counter = server.cmd(&["GET", RedisServer::FENCE_KEY]).await;
    let counter: Option<u64> = redis::from_redis_value(counter).expect("a number, or none yet");
    counter.unwrap_or_default()
}
