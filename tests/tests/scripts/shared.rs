//! What the scripts keep of those who share a lock: it always ends, and only its own script makes it.
//!
//! Section: guarantees.md#every-kind-of-lock

use tests::{Peer, RedisServer, connect, token};

const KINDS: [&str; 2] = ["r", "p3"];

/// Another peer of the same lock, in a kind.
async fn beside(server: &RedisServer, kind: &str) -> Peer {
    Peer::new(server, "shared", true).await.of_kind(kind)
}

/// How long what is kept of the holders lasts, which is as long as their lock does.
async fn lasts(peer: &mut Peer) -> i64 {
    let holders = RedisServer::holders_key(&peer.lock);
    let holders: i64 = peer.cmd(&["PTTL", &holders]).await;
    let owner = peer.ttl().await;
    assert!(owner > 0, "the lock has no ttl: {owner}");
    assert!((owner - holders).abs() < 1_000, "{owner} and {holders}");
    holders
}

async fn holders(peer: &mut Peer) -> usize {
    let holders = RedisServer::holders_key(&peer.lock);
    peer.cmd(&["ZCARD", &holders]).await
}

/// As if the token's lease had ended a while ago, without anybody's knowing.
async fn expire(peer: &mut Peer, number: u32) {
    let holders = RedisServer::holders_key(&peer.lock);
    let ended: i64 = peer.cmd(&["ZADD", &holders, "1", &token(number)]).await;
    assert_eq!(ended, 0, "it was no holder");
}

#[tokio::test]
async fn the_holders_always_have_a_ttl() {
    let server = RedisServer::start().await;
    for kind in KINDS {
        let mut peer = beside(&server, kind).await;
        let mut writer = beside(&server, "x").await;
        peer.acquire(1, 60_000, true).await;
        assert!((50_000..=60_000).contains(&lasts(&mut peer).await));
        peer.acquire(2, 5_000, true).await;
        assert!(lasts(&mut peer).await > 50_000, "a short lease cut it");
        assert!(peer.renew(2, 20_000).await);
        assert!(lasts(&mut peer).await > 50_000, "a renewal cut it");
        assert!(peer.release(1).await);
        let left = lasts(&mut peer).await;
        assert!(
            (10_000..=20_000).contains(&left),
            "the longest left: {left}"
        );
        assert!(peer.renew(2, 40_000).await);
        assert!(lasts(&mut peer).await > 30_000, "it was not extended");
        assert_eq!(peer.acquire(2, 50_000, true).await[1], "granted");
        assert!(lasts(&mut peer).await > 40_000, "again under its name");
        assert_eq!(holders(&mut peer).await, 1);

        // A hand-over lasts until it is claimed.
        assert_eq!(writer.acquire(3, 60_000, true).await[1], "waiting");
        assert_eq!(peer.acquire(4, 60_000, true).await[1], "waiting");
        assert!(peer.release(2).await);
        assert_eq!(writer.holder().await, Some(token(3)));
        assert_eq!(holders(&mut peer).await, 0);
        assert!(writer.release(3).await);
        assert!(lasts(&mut peer).await <= 3_000, "a grant is claimed soon");
        assert_eq!(peer.ask(4, 60_000).await, "granted");
        assert!(lasts(&mut peer).await > 50_000, "it was not extended");
        assert!(peer.release_into_cooldown(4, 9_000).await);
        assert!(lasts(&mut peer).await <= 9_000, "a longer cooldown");
        let _: () = peer.cmd(&["FLUSHALL"]).await;
    }
}

#[tokio::test]
async fn the_last_to_go_leaves_nothing() {
    let server = RedisServer::start().await;
    for kind in KINDS {
        let mut peer = beside(&server, kind).await;
        for number in 1..=3 {
            assert_eq!(peer.acquire(number, 60_000, true).await[1], "granted");
        }
        for number in 1..=3 {
            assert!(peer.release(number).await);
            assert!(!peer.release(number).await, "once");
        }
        assert_eq!(server.keys("lock:{*").await, [""; 0]);
    }
}

#[tokio::test]
async fn a_renewal_makes_no_keys() {
    let server = RedisServer::start().await;
    for kind in KINDS {
        let mut peer = beside(&server, kind).await;
        assert!(!peer.renew(1, 60_000).await);
        assert_eq!(server.keys("*").await, [""; 0], "of nothing");

        let (owner, holders) = ("lock:{shared}", "lock:{shared}:h");
        let shared = format!("*{kind}");
        let _: () = peer.cmd(&["SET", owner, &shared, "PX", "60000"]).await;
        assert!(!peer.renew(1, 60_000).await);
        assert_eq!(server.keys("*").await, [owner], "of an owner alone");
        let _: i64 = peer.cmd(&["DEL", owner]).await;

        let _: i64 = peer.cmd(&["ZADD", holders, "9e15", &token(1)]).await;
        assert!(!peer.renew(1, 60_000).await);
        assert_eq!(server.keys("*").await, [holders], "of holders alone");
        let _: () = peer.cmd(&["FLUSHALL"]).await;
    }
}

#[tokio::test]
async fn a_lease_of_another_kind_is_not_extended() {
    let server = RedisServer::start().await;
    for kind in KINDS {
        let mut peer = beside(&server, kind).await;
        peer.acquire(1, 5_000, true).await;
        for other in ["x", "r", "p3", "p4"] {
            let mut peer = beside(&server, other).await;
            assert_eq!(peer.renew(1, 60_000).await, other == kind, "{other}");
        }
        let _: () = peer.cmd(&["FLUSHALL"]).await;
    }
}

#[tokio::test]
async fn who_has_expired_beside_others_is_gone() {
    let server = RedisServer::start().await;
    for kind in KINDS {
        let mut peer = beside(&server, kind).await;
        for number in [1, 2, 3] {
            peer.acquire(number, 60_000, true).await;
        }
        expire(&mut peer, 2).await;
        assert!(!peer.renew(2, 60_000).await, "renewed");
        assert_eq!(peer.ask(2, 60_000).await, "gone");
        assert!(!peer.release(2).await, "released");
        expire(&mut peer, 1).await;
        // Its permit is free, and the next holder removes what it left.
        assert_eq!(peer.acquire(4, 60_000, false).await[1], "granted");
        assert_eq!(holders(&mut peer).await, 2);
        assert!(peer.release(3).await && peer.release(4).await);
        assert_eq!(server.keys("lock:{*").await, [""; 0]);
    }
}

#[tokio::test]
async fn who_has_expired_is_neither_shown_nor_counted() {
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    for kind in KINDS {
        let mut peer = beside(&server, kind).await;
        for number in [1, 2, 3] {
            peer.acquire(number, 60_000, true).await;
        }
        expire(&mut peer, 2).await;
        let status = locks.status("shared").await.expect("an answer");
        assert_eq!(status.holders.len(), 2, "{status:?}");
        let count = locks.force_release("shared").await;
        assert_eq!(count.expect("an answer"), 2);
    }
}

#[tokio::test]
async fn what_a_lost_lock_left_behind_does_not_count() {
    let server = RedisServer::start().await;
    for kind in KINDS {
        let mut peer = beside(&server, kind).await;
        for number in [1, 2, 3] {
            peer.acquire(number, 60_000, true).await;
        }
        let owner = RedisServer::owner_key(&peer.lock);
        let _: i64 = peer.cmd(&["DEL", &owner]).await;
        assert!(!peer.renew(1, 60_000).await);
        for number in [4, 5] {
            assert_eq!(peer.acquire(number, 60_000, false).await[1], "granted");
        }
        assert_eq!(holders(&mut peer).await, 2);
        assert!(!peer.renew(1, 60_000).await, "the old one is back");
        assert!(!peer.release(2).await);
        let _: () = peer.cmd(&["FLUSHALL"]).await;
    }
}

#[tokio::test]
async fn another_number_of_permits_waits() {
    let server = RedisServer::start().await;
    let (mut two, mut three) = (beside(&server, "p2").await, beside(&server, "p3").await);
    two.acquire(1, 60_000, true).await;
    for (kind, number) in [("x", 3), ("r", 4), ("p3", 5)] {
        let mut other = beside(&server, kind).await;
        assert_eq!(other.acquire(number, 60_000, false).await[1], "busy");
    }
    assert_eq!(three.acquire(2, 60_000, true).await[1], "waiting");
    assert!(two.release(1).await);
    assert_eq!(three.ask(2, 60_000).await, "granted");
}

#[tokio::test]
async fn the_dead_among_those_who_share_are_skipped() {
    let server = RedisServer::start().await;
    for kind in KINDS {
        let mut peer = beside(&server, kind).await;
        let dead = Peer::new(&server, "shared", false).await;
        let mut dead = dead.of_kind(kind);
        let mut writer = beside(&server, "x").await;
        writer.acquire(1, 60_000, true).await;
        for number in 2..10 {
            assert_eq!(dead.acquire(number, 60_000, true).await[1], "waiting");
        }
        peer.acquire(10, 60_000, true).await;
        dead.acquire(11, 60_000, true).await;
        peer.acquire(12, 60_000, true).await;
        writer.acquire(13, 60_000, true).await;
        assert!(writer.release(1).await);
        assert_eq!(holders(&mut peer).await, 2, "the dead hold it");
        assert!(peer.release(10).await && peer.release(12).await);
        assert_eq!(writer.holder().await, Some(token(13)));

        // Only the dead: nobody holds it.
        dead.acquire(14, 60_000, true).await;
        assert!(writer.release(13).await);
        assert_eq!(server.keys("lock:{*").await, [""; 0]);
    }
}

#[tokio::test]
async fn a_dead_writer_does_not_hold_up_readers() {
    let server = RedisServer::start().await;
    let (mut reader, mut dead) = (
        beside(&server, "r").await,
        Peer::new(&server, "shared", false).await,
    );
    reader.acquire(1, 60_000, true).await;
    dead.acquire(2, 60_000, true).await;
    // It may be alive, as far as anybody knows yet.
    assert_eq!(reader.acquire(3, 60_000, true).await[1], "waiting");
    let (seconds, micros): (u64, u64) = reader.cmd(&["TIME"]).await;
    let before = ((seconds - 4) * 1_000_000 + micros).to_string();
    let seen = RedisServer::seen_key(&reader.lock);
    let channel = dead.channel.clone();
    let _: i64 = reader.cmd(&["ZADD", &seen, &before, &channel]).await;
    assert_eq!(reader.ask(3, 60_000).await, "granted");
    assert_eq!(holders(&mut reader).await, 2);
}

#[tokio::test]
async fn a_crowd_of_readers_enters_in_bounded_steps() {
    let server = RedisServer::start().await;
    let (mut writer, mut reader) = (beside(&server, "x").await, beside(&server, "r").await);
    writer.acquire(1, 60_000, true).await;
    reader.acquire(2, 60_000, true).await;
    let queue = RedisServer::queue_key(&reader.lock);
    let mut pipeline = redis::pipe();
    for number in 3..=1_500_u32 {
        let member = reader.member(number, 60_000);
        pipeline
            .cmd("ZADD")
            .arg(&queue)
            .arg(number)
            .arg(member)
            .ignore();
    }
    let mut connection = reader.connection.clone();
    let () = pipeline.query_async(&mut connection).await.expect("runs");
    assert!(writer.release(1).await);
    assert_eq!(holders(&mut reader).await, 1_000);
    assert_eq!(reader.ask(3, 60_000).await, "granted");
    assert_eq!(holders(&mut reader).await, 1_499);
}

#[tokio::test]
async fn an_overview_names_as_many_living_holders_as_it_was_asked_for() {
    let server = RedisServer::start().await;
    for kind in KINDS {
        let mut peer = beside(&server, kind).await;
        for number in 1..=3 {
            peer.acquire(number, 60_000, true).await;
        }
        assert_eq!(peer.overview(0).await, (vec![], 3));
        let (names, held_by) = peer.overview(2).await;
        assert_eq!((names.len(), held_by), (2, 3));
        for number in 1..=2 {
            expire(&mut peer, number).await;
        }
        assert_eq!(peer.overview(2).await, (vec![token(3)], 1));
        assert_eq!(peer.overview(0).await, (vec![], 1));
        peer.cmd::<()>(&["FLUSHALL"]).await;
    }
}
