//! The server's clock goes back, or that of a replica that takes over is behind: positions grow all the same, and nobody
//! lives longer for it.
//!
//! Section: guarantees.md#first-come-first-served

use std::time::Duration;

use redis::Value;
use tests::{Peer, RedisServer, RedlockFleet, TIME_LIMIT, eventually, token};

const TTL: u32 = 60_000;
const MINUTE: Duration = Duration::from_secs(60);
/// Long after whoever has joined.
const LATER: Duration = Duration::from_millis(20);

/// Servers whose clocks can be moved; the first is a minute ahead.
async fn servers(test: &str) -> Option<RedlockFleet> {
    let fleet = RedlockFleet::with_clocks(test).await?;
    fleet.set_clock(0, MINUTE).await;
    Some(fleet)
}

/// Connects what is known of a peer to another server.
async fn move_to(server: &RedisServer, peer: &mut Peer) {
    let mut moved = Peer::new(server, &peer.lock, false).await;
    moved
        .connection
        .subscribe(&peer.channel)
        .await
        .expect("heard");
    peer.connection = moved.connection;
}

/// The queue from its head.
async fn queue(peer: &mut Peer) -> Vec<(String, f64)> {
    let key = RedisServer::queue_key(&peer.lock);
    let members: Vec<(String, f64)> = peer.cmd(&["ZRANGE", &key, "0", "-1", "WITHSCORES"]).await;
    let members = members.into_iter();
    let name = |member: &str| member.split('\n').nth(1).expect("a name").to_owned();
    members
        .map(|(member, position)| (name(&member), position))
        .collect()
}

async fn join(peer: &mut Peer, number: u32) {
    assert_eq!(peer.acquire(number, TTL, true).await[1], "waiting");
}

#[tokio::test]
async fn newcomers_wait_behind_those_who_joined_before_the_clock_went_back() {
    let Some(fleet) = servers("scripts: newcomers_wait_behind").await else {
        return;
    };
    let server = &fleet.servers[0];
    let mut holder = Peer::new(server, "key", true).await;
    let mut peer = Peer::new(server, "key", true).await;
    holder.acquire(1, TTL, true).await;
    join(&mut peer, 2).await;
    join(&mut peer, 3).await;
    fleet.set_clock(0, Duration::ZERO).await;
    join(&mut peer, 4).await;
    tokio::time::sleep(LATER).await;
    join(&mut holder, 5).await;
    tokio::time::sleep(LATER).await;
    let calls = [6, 7].map(|it| ("key", tests::Step::Acquire(it, TTL)));
    peer.many(&calls).await;
    let queue = queue(&mut peer).await;
    let names: Vec<_> = queue.iter().map(|it| it.0.clone()).collect();
    assert_eq!(names, (2..=7).map(token).collect::<Vec<_>>());
    // Nobody who joins later than a millisecond looks as if he had joined sooner.
    let later = |a: usize, b: usize| queue[b].1 - queue[a].1;
    assert!(later(1, 2) > 1_000.0, "{queue:?}");
    for (a, b) in [(2, 3), (3, 4)] {
        let later = later(a, b);
        assert!((20_000.0..30_000_000.0).contains(&later), "{queue:?}");
    }
}

#[tokio::test]
async fn a_chain_passes_nobody_who_joined_before_the_clock_went_back() {
    let Some(fleet) = servers("scripts: a_chain_passes_nobody").await else {
        return;
    };
    let server = &fleet.servers[0];
    let mut holder = Peer::new(server, "key", true).await;
    let mut peer = Peer::new(server, "key", true).await.of_kind("x+");
    holder.acquire(1, TTL, true).await;
    join(&mut peer, 2).await;
    join(&mut holder, 3).await;
    fleet.set_clock(0, Duration::ZERO).await;
    for number in 4..=6 {
        join(&mut peer, number).await;
        tokio::time::sleep(LATER).await;
    }
    assert!(holder.release(1).await);
    assert_eq!(server.waiting("key").await, 4, "nobody follows");
    assert!(peer.release(2).await);
    assert_eq!(holder.holder().await, Some(token(3)));
}

#[tokio::test]
async fn newcomers_wait_behind_those_whom_a_replica_knows() {
    let Some(fleet) = servers("scripts: newcomers_stand_behind_those_whom").await else {
        return;
    };
    let [master, replica, ..] = &fleet.servers[..] else {
        unreachable!("there are five");
    };
    let (ip, port) = ("127.0.0.1", master.port().to_string());
    replica.cmd(&["REPLICAOF", ip, &port]).await;
    let mut holder = Peer::new(master, "key", true).await;
    let mut peer = Peer::new(master, "key", true).await;
    holder.acquire(1, TTL, true).await;
    join(&mut peer, 2).await;
    let key = RedisServer::queue_key("key");
    let has_it = async || replica.cmd(&["ZCARD", &key]).await == Value::Int(1);
    eventually(TIME_LIMIT, has_it).await;
    replica.cmd(&["REPLICAOF", "NO", "ONE"]).await;
    move_to(replica, &mut holder).await;
    move_to(replica, &mut peer).await;
    for number in 3..=5 {
        join(&mut holder, number).await;
    }
    assert!(holder.release(1).await);
    for number in 2..=5 {
        assert_eq!(holder.holder().await, Some(token(number)));
        assert!(peer.release(number).await);
    }
}

/// A connection that has stopped: it listens, and asks no more.
#[tokio::test]
async fn who_stopped_before_the_clock_went_back_is_passed_over_soon() {
    let Some(fleet) = servers("scripts: who_stopped_before_the_clock").await else {
        return;
    };
    let server = &fleet.servers[0];
    let mut living = Peer::new(server, "key", true).await;
    let mut stopped = Peer::new(server, "key", true).await.of_kind("x+");
    living.acquire(1, TTL, true).await;
    join(&mut stopped, 2).await;
    join(&mut living, 3).await;
    fleet.set_clock(0, Duration::ZERO).await;
    assert_eq!(living.ask(3, TTL).await, "waiting");
    let (seen, channel) = (RedisServer::seen_key("key"), stopped.channel.clone());
    let marked: f64 = living.cmd(&["ZSCORE", &seen, &channel]).await;
    let (seconds, _): (f64, f64) = living.cmd(&["TIME"]).await;
    assert!(
        marked < (seconds + 2.0) * 1e6,
        "seen in the future: {marked}"
    );
    assert!(marked % 1.0 > 0.0, "more of it wait");
    // Four seconds later.
    fleet.set_clock(0, Duration::from_secs(4)).await;
    assert_eq!(living.ask(3, TTL).await, "waiting");
    assert!(living.release(1).await);
    assert_eq!(living.holder().await, Some(token(3)));
}
