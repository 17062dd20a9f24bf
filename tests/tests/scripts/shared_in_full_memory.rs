//! Those who share a lock when the server's memory is full: newcomers are refused, and nothing is half written.
//!
//! Section: guarantees.md#every-kind-of-lock

use tests::{Peer, RedisServer, connect, token};

async fn beside(server: &RedisServer, kind: &str) -> Peer {
    Peer::new(server, "full", true).await.of_kind(kind)
}

async fn fill(peer: &mut Peer) {
    let _: () = peer.cmd(&["CONFIG", "SET", "maxmemory", "1"]).await;
}

/// The newcomer is refused, and the server's keys of the lock are what they were.
async fn is_refused(server: &RedisServer, peer: &mut Peer, number: u32) {
    for wait in [false, true] {
        let before = contents(server, peer).await;
        let full = peer.try_acquire(number, 60_000, wait).await;
        let error = full.expect_err("memory is full").to_string();
        assert!(error.contains("OOM"), "{error}");
        assert_eq!(contents(server, peer).await, before, "half written");
    }
}

/// Everything that is kept of all locks.
async fn contents(server: &RedisServer, peer: &mut Peer) -> Vec<Vec<String>> {
    let mut contents = Vec::new();
    for key in server.keys("lock:*").await {
        let kind: String = peer.cmd(&["TYPE", &key]).await;
        let mut value = match kind.as_str() {
            "string" => vec![peer.cmd(&["GET", &key]).await],
            "zset" => peer.cmd(&["ZRANGE", &key, "0", "-1"]).await,
            "hash" => peer.cmd(&["HKEYS", &key]).await,
            _ => panic!("{key} is a {kind}"),
        };
        value.push(key);
        contents.push(value);
    }
    contents
}

#[tokio::test]
async fn newcomers_are_refused_whole() {
    let server = RedisServer::start().await;
    for kind in ["r", "p3"] {
        let mut other = Peer::new(&server, "other", true).await.of_kind(kind);
        let mut peer = beside(&server, kind).await;
        peer.open().await;
        peer.acquire(1, 60_000, true).await;
        fill(&mut peer).await;
        is_refused(&server, &mut other, 9).await;
        // There would be room beside the holder.
        is_refused(&server, &mut peer, 2).await;
        empty(&mut peer).await;
    }
}

async fn empty(peer: &mut Peer) {
    let _: () = peer.cmd(&["CONFIG", "SET", "maxmemory", "0"]).await;
    let _: () = peer.cmd(&["FLUSHALL"]).await;
}

#[tokio::test]
async fn so_they_are_where_one_has_expired() {
    let server = RedisServer::start().await;
    let mut peer = beside(&server, "p2").await;
    peer.open().await;
    peer.acquire(1, 60_000, true).await;
    peer.acquire(2, 60_000, true).await;
    let holders = RedisServer::holders_key("full");
    let _: i64 = peer.cmd(&["ZADD", &holders, "1", &token(1)]).await;
    fill(&mut peer).await;
    is_refused(&server, &mut peer, 3).await;
    assert!(peer.renew(2, 60_000).await);
}

#[tokio::test]
async fn who_holds_it_renews_asks_and_releases() {
    let server = RedisServer::start().await;
    for kind in ["r", "p2"] {
        let (mut peer, mut writer) = (beside(&server, kind).await, beside(&server, "x").await);
        peer.open().await;
        peer.acquire(1, 5_000, true).await;
        peer.acquire(2, 5_000, true).await;
        assert_eq!(writer.acquire(3, 60_000, true).await[1], "waiting");
        assert_eq!(peer.acquire(4, 60_000, true).await[1], "waiting");
        fill(&mut peer).await;

        assert!(peer.renew(1, 60_000).await, "renewing passes");
        assert!(peer.ttl().await > 50_000, "it was not extended");
        assert_eq!(peer.ask(2, 60_000).await, "granted", "asking passes");
        assert_eq!(peer.ask(4, 60_000).await, "waiting");
        assert_eq!(peer.acquire(1, 50_000, true).await[1], "granted", "again");
        assert!(peer.release(1).await, "releasing passes");
        assert!(peer.release(2).await);
        assert_eq!(writer.holder().await, Some(token(3)), "it is handed over");
        assert!(writer.release(3).await);
        assert!(peer.renew(4, 60_000).await, "to those who share, too");
        assert!(peer.leave(4, 60_000).await);
        assert_eq!(server.keys("lock:{*").await, [""; 0]);
        empty(&mut peer).await;
    }
}

#[tokio::test]
async fn who_leaves_the_queue_lets_in_those_behind() {
    let server = RedisServer::start().await;
    let (mut reader, mut writer) = (beside(&server, "r").await, beside(&server, "x").await);
    reader.open().await;
    reader.acquire(1, 60_000, true).await;
    writer.acquire(2, 60_000, true).await;
    reader.acquire(3, 60_000, true).await;
    fill(&mut reader).await;
    assert!(!writer.leave(2, 60_000).await);
    assert!(reader.renew(3, 60_000).await, "it was not let in");
}

#[tokio::test]
async fn questions_and_a_forced_release_pass() {
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    for kind in ["x", "r", "p2"] {
        let (mut peer, mut writer) = (beside(&server, kind).await, beside(&server, "x").await);
        peer.acquire(1, 60_000, true).await;
        writer.acquire(2, 60_000, true).await;
        fill(&mut peer).await;
        let status = locks.status("full").await.expect("an answer");
        assert_eq!((status.holders.len(), status.waiting), (1, 1), "{kind}");
        let names = locks.list("*").await.expect("an answer");
        assert_eq!(names.len(), 1, "{kind}");
        assert_eq!(locks.force_release("full").await.expect("an answer"), 1);
        assert_eq!(writer.holder().await, Some(token(2)), "{kind}");
        assert!(!peer.renew(1, 60_000).await);
        assert!(writer.release(2).await);
        assert_eq!(server.keys("lock:{*").await, [""; 0]);
        empty(&mut peer).await;
    }
}
