//! What the scripts know of connections that live, and of those that do not.
//!
//! Section: guarantees.md#first-come-first-served

use redis::Value;
use tests::{Peer, RedisServer, connect, token};

async fn fence(peer: &mut Peer) -> u64 {
    peer.cmd(&["GET", RedisServer::FENCE_KEY]).await
}

/// How many connections are noted as waiting.
async fn noted(peer: &mut Peer) -> usize {
    let seen = RedisServer::seen_key(&peer.lock);
    peer.cmd(&["ZCARD", &seen]).await
}

/// As if so many connections had not been heard of for long.
async fn fall_silent(peer: &mut Peer, channels: impl Iterator<Item = String>) {
    let mut cmd = redis::cmd("ZADD");
    cmd.arg(RedisServer::seen_key(&peer.lock));
    for channel in channels {
        cmd.arg(1).arg(channel);
    }
    let mut connection = peer.connection.clone();
    let () = cmd.query_async(&mut connection).await.expect("it runs");
}

fn strangers() -> impl Iterator<Item = String> {
    (0..500).map(|number| format!("lock:grant:{number}"))
}

#[tokio::test]
async fn the_silent_are_forgotten_with_the_next_question() {
    let server = RedisServer::start().await;
    for kind in ["x", "r"] {
        let mut peer = Peer::new(&server, "seen", true).await.of_kind(kind);
        let mut writer = Peer::new(&server, "seen", true).await;
        writer.acquire(1, 60_000, true).await;
        peer.acquire(2, 60_000, true).await;
        fall_silent(&mut peer, strangers()).await;
        assert_eq!(noted(&mut peer).await, 501);
        assert_eq!(peer.ask(2, 60_000).await, "waiting");
        assert_eq!(noted(&mut peer).await, 1);
        let _: () = peer.cmd(&["FLUSHALL"]).await;
    }
}

#[tokio::test]
async fn the_silent_are_forgotten_where_others_join() {
    let server = RedisServer::start().await;
    let mut peer = Peer::new(&server, "seen", true).await;
    peer.acquire(1, 60_000, true).await;
    peer.acquire(2, 60_000, true).await;
    fall_silent(&mut peer, strangers()).await;
    // Not every one of them looks.
    for number in 3..1_500 {
        peer.acquire(number, 60_000, true).await;
    }
    assert_eq!(noted(&mut peer).await, 1);
}

#[tokio::test]
async fn a_connection_that_is_deaf_is_tried_once() {
    let server = RedisServer::start().await;
    let mut living = Peer::new(&server, "deaf", true).await;
    let mut deaf = Peer::new(&server, "deaf", false).await;
    living.acquire(1, 60_000, true).await;
    deaf.acquire(2, 60_000, true).await;
    deaf.acquire(3, 60_000, true).await;
    living.acquire(4, 60_000, true).await;
    let before = fence(&mut living).await;
    assert!(living.release(1).await);
    assert_eq!(living.holder().await, Some(token(4)));
    let numbered = fence(&mut living).await - before;
    assert_eq!(numbered, 2, "one for the deaf and one for the living");
}

#[tokio::test]
async fn a_connection_that_is_deaf_keeps_nobody_from_a_shared_lock() {
    let server = RedisServer::start().await;
    let mut holder = Peer::new(&server, "deaf", true).await;
    let mut deaf = Peer::new(&server, "deaf", false).await;
    let mut reader = Peer::new(&server, "deaf", true).await.of_kind("r");
    holder.acquire(1, 60_000, true).await;
    deaf.acquire(2, 60_000, true).await;
    reader.acquire(3, 60_000, true).await;
    deaf.acquire(4, 60_000, true).await;
    reader.acquire(5, 60_000, true).await;
    assert!(holder.release(1).await);
    assert!(reader.renew(3, 60_000).await);
    assert!(reader.renew(5, 60_000).await, "a dead writer is in its way");
    // A deaf reader does not share it: else it would have no room for others, or never end with them.
    for kind in ["r", "p2"] {
        let _: () = holder.cmd(&["FLUSHALL"]).await;
        holder.acquire(1, 60_000, true).await;
        for number in 2..=5 {
            let peer = if number % 2 == 0 {
                &mut deaf
            } else {
                &mut reader
            };
            kind.clone_into(&mut peer.kind);
            peer.acquire(number, 60_000, true).await;
        }
        assert!(holder.release(1).await);
        let holders = RedisServer::holders_key("deaf");
        let holders: Vec<String> = holder.cmd(&["ZRANGE", &holders, "0", "-1"]).await;
        assert_eq!(holders, [token(3), token(5)], "{kind}");
        for number in [3, 5] {
            assert!(reader.renew(number, 60_000).await, "{kind}");
            assert!(reader.release(number).await, "{kind}");
        }
        assert_eq!(server.keys("lock:{*").await, [""; 0], "{kind}");
    }
}

// Section: guarantees.md#looking-at-a-lock
#[tokio::test]
async fn a_status_counts_those_who_live() {
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let waiters = async || locks.status("count").await.expect("an answer").waiting;
    let mut living = Peer::new(&server, "count", true).await;
    let mut silent = Peer::new(&server, "count", true).await;
    living.acquire(1, 60_000, true).await;
    for number in 2..5 {
        silent.acquire(number, 60_000, true).await;
    }
    living.acquire(5, 60_000, true).await;
    assert_eq!(waiters().await, 4);
    let channel = silent.channel.clone();
    fall_silent(&mut living, [channel].into_iter()).await;
    assert_eq!(waiters().await, 1);
    let queue = RedisServer::queue_key("count");
    let left = server.cmd(&["ZCARD", &queue]).await;
    assert_eq!(left, Value::Int(4), "a question changes nothing");

    // Behind a thousand they are not looked at one by one.
    let mut cmd = redis::cmd("ZADD");
    cmd.arg(&queue);
    for number in 10..1_510 {
        cmd.arg(number).arg(silent.member(number, 60_000));
    }
    let mut connection = living.connection.clone();
    let () = cmd.query_async(&mut connection).await.expect("it runs");
    assert_eq!(waiters().await, 504);
}
