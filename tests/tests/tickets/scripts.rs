//! The scripts of tickets, called by hand: what a former holder and a second call find.
//!
//! Section: guarantees.md#tickets

use tests::{Peer, RedisServer, token};

/// Ten seconds, in milliseconds.
const TIME: u32 = 10_000;

const KINDS: [&str; 3] = ["x", "r", "p2"];

#[tokio::test]
async fn a_former_holder_finds_nothing() {
    let server = RedisServer::start().await;
    for kind in KINDS {
        let mut peer = Peer::new(&server, "late", true).await.of_kind(kind);
        assert_eq!(peer.acquire(1, 60_000, true).await[1], "granted");
        assert!(peer.issue(1, 7, TIME).await, "{kind}");
        let stays = async |peer: &mut Peer| {
            let left = peer.ttl().await;
            assert!((1..=i64::from(TIME)).contains(&left), "{kind}: {left}");
        };
        stays(&mut peer).await;
        assert!(!peer.renew(1, 60_000).await, "{kind}: a late renewal");
        assert!(!peer.release(1).await, "{kind}: a late release");
        assert!(!peer.leave(1, 60_000).await, "{kind}: leaving");
        assert_eq!(peer.ask(1, 60_000).await, "gone", "{kind}");
        stays(&mut peer).await;
        let fence = peer.adopt(2, 7, 30_000).await.expect("it is valid");
        assert!(!peer.renew(1, 60_000).await, "{kind}: after the adoption");
        assert!(peer.renew(2, 30_000).await, "{kind}");
        // As a repeated call does whose first answer was lost.
        let again = peer.adopt(2, 7, 30_000).await.expect("it was us");
        assert!(again > fence, "{kind}");
        assert_eq!(peer.adopt(3, 7, 30_000).await, None, "{kind}: a second one");
        assert!(!peer.issue(1, 8, TIME).await, "{kind}: a late ticket");
        assert!(peer.release(2).await, "{kind}");
        assert_eq!(peer.adopt(3, 7, 30_000).await, None, "{kind}");
        let _: () = peer.cmd(&["FLUSHALL"]).await;
    }
}

#[tokio::test]
async fn a_ticket_that_is_written_again_lasts_no_longer() {
    let server = RedisServer::start().await;
    for kind in KINDS {
        let mut peer = Peer::new(&server, "again", true).await.of_kind(kind);
        peer.acquire(1, 60_000, true).await;
        assert!(peer.issue(1, 7, TIME).await);
        assert!(peer.issue(1, 7, 60_000).await, "{kind}: it was written");
        let left = peer.ttl().await;
        assert!((1..=i64::from(TIME)).contains(&left), "{kind}: {left}");
        assert!(!peer.issue(1, 8, TIME).await, "{kind}: another one");
        let _: () = peer.cmd(&["FLUSHALL"]).await;
    }
}

#[tokio::test]
async fn a_ticket_of_another_kind_is_not_adopted() {
    let server = RedisServer::start().await;
    for kind in KINDS {
        let mut peer = Peer::new(&server, "kind", true).await.of_kind(kind);
        peer.acquire(1, 60_000, true).await;
        assert!(peer.issue(1, 7, TIME).await);
        for other in KINDS.into_iter().filter(|it| *it != kind) {
            let mut other = Peer::new(&server, "kind", true).await.of_kind(other);
            assert_eq!(other.adopt(2, 7, 30_000).await, None, "{kind}");
        }
        let _: () = peer.cmd(&["FLUSHALL"]).await;
    }
}

#[tokio::test]
async fn a_ticket_of_a_lease_that_has_ended_is_not_adopted() {
    let server = RedisServer::start().await;
    for kind in ["r", "p2"] {
        let mut peer = Peer::new(&server, "ended", true).await.of_kind(kind);
        // Another one keeps the keys of the lock.
        peer.acquire(1, 60_000, true).await;
        peer.acquire(2, 60_000, true).await;
        assert!(peer.issue(2, 7, 1).await);
        let ended = async |peer: &mut Peer| peer.overview(9).await.0 == [token(1)];
        while !ended(&mut peer).await {}
        assert_eq!(peer.adopt(3, 7, 30_000).await, None, "{kind}");
        let _: () = peer.cmd(&["FLUSHALL"]).await;
    }
}

#[tokio::test]
async fn tickets_pass_when_memory_is_full() {
    let server = RedisServer::start().await;
    for kind in KINDS {
        let mut peer = Peer::new(&server, "full", true).await.of_kind(kind);
        peer.acquire(1, 60_000, true).await;
        let _: () = peer.cmd(&["CONFIG", "SET", "maxmemory", "1"]).await;
        assert!(peer.issue(1, 7, TIME).await, "{kind}");
        assert!(peer.adopt(2, 7, 30_000).await.is_some(), "{kind}");
        let _: () = peer.cmd(&["CONFIG", "SET", "maxmemory", "0"]).await;
        let _: () = peer.cmd(&["FLUSHALL"]).await;
    }
}
