//! The script of downgrades, called by hand: what a second call and a late one find.
//!
//! Section: guarantees.md#from-writer-to-reader

use tests::{Peer, RedisServer, token};

/// A minute, in milliseconds.
const TTL: u32 = 60_000;

async fn holding(server: &RedisServer) -> Peer {
    let mut peer = Peer::new(server, "key", true).await;
    assert_eq!(peer.acquire(1, TTL, true).await[1], "granted");
    peer
}

#[tokio::test]
async fn a_reader_has_what_is_left_of_the_lease() {
    let server = RedisServer::start().await;
    let mut peer = holding(&server).await;
    assert!(peer.downgrade(1).await);
    let left = peer.ttl().await;
    assert!((1..=i64::from(TTL)).contains(&left), "{left}");
    assert_eq!(peer.overview(9).await.0, [token(1)]);
    assert!(peer.downgrade(1).await, "as after a lost answer");
    assert_eq!(peer.overview(9).await.0, [token(1)], "once");
    let mut reader = Peer::new(&server, "key", true).await.of_kind("r");
    assert!(reader.renew(1, TTL).await);
    assert_eq!(reader.acquire(2, TTL, true).await[1], "granted");
    assert!(peer.release(1).await);
    assert!(!peer.downgrade(1).await, "it is not ours any more");
    assert_eq!(reader.overview(9).await.0, [token(2)]);
}

#[tokio::test]
async fn who_does_not_hold_the_lock_is_no_reader() {
    let server = RedisServer::start().await;
    let mut peer = holding(&server).await;
    assert!(!peer.downgrade(2).await);
    assert!(peer.release(1).await);
    assert!(!peer.downgrade(1).await);
    assert_eq!(peer.ttl().await, -2, "it makes no key");
}

#[tokio::test]
async fn it_passes_when_memory_is_full() {
    let server = RedisServer::start().await;
    let mut peer = holding(&server).await;
    let _: () = peer.cmd(&["CONFIG", "SET", "maxmemory", "1"]).await;
    assert!(peer.downgrade(1).await);
    assert_eq!(peer.overview(9).await.0, [token(1)]);
    let _: () = peer.cmd(&["CONFIG", "SET", "maxmemory", "0"]).await;
    assert!(peer.release(1).await);
}
