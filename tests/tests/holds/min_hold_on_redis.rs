//! `min_hold` where the process has ended, and where a renewal comes late.
//!
//! Section: guarantees.md#how-long-it-is-held

use std::time::Duration;

use tests::{Peer, RedisServer, Worker, connect, eventually, take_turn, token};

#[tokio::test]
async fn it_outlives_its_process() {
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let run = async || {
        let args = ["daily-job".to_owned(), server.url()];
        let mut worker = Worker::spawn(env!("CARGO_BIN_EXE_worker"), args).await;
        let said = worker.line().await;
        if said == "the body runs" {
            assert_eq!(worker.line().await, "done");
        }
        assert!(worker.wait().await.success());
        said
    };
    assert_eq!(run().await, "the body runs");
    let refused = run().await;
    assert!(refused.contains("cools down for another"), "{refused}");
    let status = locks.status("daily").await.unwrap();
    assert!(status.holders[0].cooling_down, "{status:?}");
    let left = status.holders[0].remaining.unwrap();
    assert!(
        left < Duration::from_secs(5),
        "it has no such ttl: {left:?}"
    );
    let open = async || !locks.status("daily").await.unwrap().is_cooling_down();
    eventually(Duration::from_secs(6), open).await;
    assert_eq!(run().await, "the body runs");
}

/// Ten seconds, in milliseconds.
const COOLDOWN: u32 = 10_000;

#[tokio::test]
async fn neither_a_late_renewal_nor_a_second_release_finds_it() {
    let server = RedisServer::start().await;
    for kind in ["x", "r", "p2"] {
        let mut peer = Peer::new(&server, "late", true).await.of_kind(kind);
        assert_eq!(peer.acquire(1, 60_000, true).await[1], "granted");
        assert!(peer.release_into_cooldown(1, COOLDOWN).await, "it was ours");
        let cools_down = async |peer: &mut Peer| {
            let left = peer.ttl().await;
            assert!((1..=i64::from(COOLDOWN)).contains(&left), "{kind}: {left}");
        };
        cools_down(&mut peer).await;
        assert!(!peer.renew(1, 60_000).await, "{kind}: a late renewal");
        cools_down(&mut peer).await;
        assert!(!peer.release(1).await, "{kind}: a second release");
        assert!(
            !peer.release_into_cooldown(1, 60_000).await,
            "{kind}: a third one"
        );
        assert!(!peer.leave(1, 60_000).await, "{kind}: leaving");
        cools_down(&mut peer).await;
        let mut other = Peer::new(&server, "late", true).await;
        assert_eq!(other.acquire(2, 60_000, false).await[1], "busy");
        let _: () = peer.cmd(&["FLUSHALL"]).await;
    }
}

#[tokio::test]
async fn a_token_in_cooldown_may_not_come_back() {
    let server = RedisServer::start().await;
    for kind in ["x", "p1"] {
        let mut peer = Peer::new(&server, "back", true).await.of_kind(kind);
        peer.acquire(1, 60_000, true).await;
        peer.release_into_cooldown(1, COOLDOWN).await;
        assert_eq!(peer.ask(1, 60_000).await, "gone");
        assert_eq!(peer.acquire(1, 60_000, false).await[1], "busy");
        assert_ne!(peer.holder().await, Some(token(1)));
        let _: () = peer.cmd(&["FLUSHALL"]).await;
    }
}

#[tokio::test]
async fn a_cooldown_passes_when_memory_is_full() {
    let server = RedisServer::start().await;
    for kind in ["x", "r", "p2"] {
        let mut peer = Peer::new(&server, "full", true).await.of_kind(kind);
        peer.acquire(1, 60_000, true).await;
        let _: () = peer.cmd(&["CONFIG", "SET", "maxmemory", "1"]).await;
        assert!(peer.release_into_cooldown(1, COOLDOWN).await, "{kind}");
        let left = peer.ttl().await;
        assert!((1..=i64::from(COOLDOWN)).contains(&left), "{kind}: {left}");
        let _: () = peer.cmd(&["CONFIG", "SET", "maxmemory", "0"]).await;
        let _: () = peer.cmd(&["FLUSHALL"]).await;
    }
    let locks = connect(server.url()).await;
    take_turn(&locks, "full").await;
}
