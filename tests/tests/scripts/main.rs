//! Each script does what `docs/protocol.md` says of it, also when memory is full, data is lost or others misbehave.

mod at_random;
mod chains;
mod clocks;
mod many;
mod notes;
mod shared;
mod shared_in_full_memory;
mod silence;
mod strangers;
mod twins;

use tests::{Peer, RedisServer, token};

#[tokio::test]
async fn acquiring_again_with_the_same_token_extends() {
    let server = RedisServer::start().await;
    let mut peer = Peer::new(&server, "again", true).await;
    assert_eq!(peer.acquire(1, 1_000, true).await[1], "granted");
    let again = peer.acquire(1, 60_000, true).await;
    assert_eq!(again[1], "granted");
    assert!(peer.ttl().await > 30_000, "it was not extended");
}

#[tokio::test]
async fn asking_after_a_lost_grant_extends_to_the_full_ttl() {
    let server = RedisServer::start().await;
    let mut peer = Peer::new(&server, "lost-grant", true).await;
    peer.acquire(1, 60_000, true).await;
    assert_eq!(peer.acquire(2, 60_000, true).await[1], "waiting");
    assert!(peer.release(1).await);
    assert!(peer.ttl().await <= 3_000, "a grant has to be claimed soon");
    assert_eq!(peer.ask(2, 60_000).await, "granted");
    assert!(peer.ttl().await > 30_000, "it was not extended");
}

/// A server before 7.2 may set a ttl of a millisecond when that has passed already, which deletes the key: a key that is
/// written after that has to end too.
#[tokio::test]
async fn a_lock_that_is_closed_ends_although_its_ttl_has_passed_while_it_is_set() {
    let server = RedisServer::start().await;
    let mut peer = Peer::new(&server, "closed", true).await;
    for closes in ["a cooldown", "a ticket", "an adoption"] {
        peer.ttls_have_passed = false;
        peer.acquire(1, 60_000, true).await;
        if closes == "an adoption" {
            assert!(peer.issue(1, 7, 60_000).await);
        }
        peer.ttls_have_passed = true;
        match closes {
            "a cooldown" => assert!(peer.release_into_cooldown(1, 20_000).await),
            "a ticket" => assert!(peer.issue(1, 7, 20_000).await),
            _ => assert!(peer.adopt(2, 7, 20_000).await.is_some()),
        }
        let left = peer.ttl().await;
        assert!((1..=20_000).contains(&left), "{closes} has {left} ms left");
        let _: () = peer.cmd(&["FLUSHALL"]).await;
    }
}

#[tokio::test]
async fn a_newcomer_does_not_pass_the_queue_after_an_expiry() {
    let server = RedisServer::start().await;
    let mut waiter = Peer::new(&server, "expired", true).await;
    let mut newcomer = Peer::new(&server, "expired", true).await;
    for wait in [false, true] {
        waiter.acquire(1, 60_000, true).await;
        assert_eq!(waiter.acquire(2, 60_000, true).await[1], "waiting");
        let owner = RedisServer::owner_key(&waiter.lock);
        // What the server does when a holder has crashed.
        let _: i64 = waiter.cmd(&["DEL", &owner]).await;
        let answer = newcomer.acquire(3, 60_000, wait).await;
        assert_eq!(answer[1], if wait { "waiting" } else { "busy" });
        assert_eq!(waiter.holder().await, Some(token(2)));
        let _: () = waiter.cmd(&["FLUSHALL"]).await;
    }
}

#[tokio::test]
async fn the_dead_are_skipped_within_the_release() {
    let server = RedisServer::start().await;
    let mut living = Peer::new(&server, "dead", true).await;
    // The fast path meets the first of them only.
    let mut dead = [
        Peer::new(&server, "dead", false).await,
        Peer::new(&server, "dead", false).await,
    ];
    living.acquire(1, 60_000, true).await;
    for number in 2..50 {
        let dead = &mut dead[number as usize % 2];
        assert_eq!(dead.acquire(number, 60_000, true).await[1], "waiting");
    }
    living.acquire(50, 60_000, true).await;
    assert!(living.release(1).await);
    assert_eq!(living.holder().await, Some(token(50)));
    assert_eq!(dead[0].ask(2, 60_000).await, "gone");
    assert_eq!(dead[1].ask(3, 60_000).await, "gone");
}

#[tokio::test]
async fn the_silent_are_skipped() {
    let server = RedisServer::start().await;
    let mut living = Peer::new(&server, "silent", true).await;
    let mut silent = Peer::new(&server, "silent", true).await;
    living.acquire(1, 60_000, true).await;
    silent.acquire(2, 60_000, true).await;
    living.acquire(3, 60_000, true).await;
    // As if it had asked for the last time four seconds ago.
    let (seconds, micros): (u64, u64) = living.cmd(&["TIME"]).await;
    let before = (seconds - 4) * 1_000_000 + micros;
    let seen = RedisServer::seen_key(&living.lock);
    let channel = silent.channel.clone();
    let _: i64 = living
        .cmd(&["ZADD", &seen, &before.to_string(), &channel])
        .await;
    assert!(living.release(1).await);
    assert_eq!(living.holder().await, Some(token(3)));
}

#[tokio::test]
async fn ten_thousand_dead_waiters_are_cleared_in_bounded_steps() {
    let server = RedisServer::start().await;
    let mut living = Peer::new(&server, "crowd", true).await;
    let dead = Peer::new(&server, "crowd", false).await;
    living.acquire(1, 60_000, true).await;
    let queue = RedisServer::queue_key(&living.lock);
    let mut pipeline = redis::pipe();
    for number in 2..10_002_u32 {
        pipeline
            .cmd("ZADD")
            .arg(&queue)
            .arg(number)
            .arg(dead.member(number, 60_000))
            .ignore();
    }
    let mut connection = living.connection.clone();
    let () = pipeline.query_async(&mut connection).await.expect("runs");
    living.acquire(20_000, 60_000, true).await;
    assert!(living.release(1).await);
    let left: i64 = living.cmd(&["ZCARD", &queue]).await;
    assert_eq!(left, 9_001, "one script clears a thousand at the most");
    let mut questions = 0;
    while living.ask(20_000, 60_000).await == "waiting" {
        questions += 1;
        assert!(questions < 12, "the crowd is never cleared");
    }
    assert_eq!(living.holder().await, Some(token(20_000)));
    assert!(living.release(20_000).await);
    assert_eq!(server.keys("lock:{*").await, Vec::<String>::new());
}

#[tokio::test]
async fn a_grant_that_raced_with_leaving_is_handed_over() {
    let server = RedisServer::start().await;
    let mut peer = Peer::new(&server, "race", true).await;
    peer.acquire(1, 60_000, true).await;
    peer.acquire(2, 60_000, true).await;
    peer.acquire(3, 60_000, true).await;
    peer.release(1).await;
    assert!(peer.leave(2, 60_000).await, "it was granted meanwhile");
    assert_eq!(peer.holder().await, Some(token(3)));
    assert!(!peer.leave(2, 60_000).await);
    assert_eq!(peer.holder().await, Some(token(3)));
}

#[tokio::test]
async fn nothing_is_half_written_when_memory_is_full() {
    let server = RedisServer::start().await;
    let mut holder = Peer::new(&server, "full", true).await;
    let mut other = Peer::new(&server, "other", true).await;
    let fence = holder.open().await;
    holder.acquire(1, 60_000, true).await;
    holder.acquire(2, 60_000, true).await;
    let _: () = holder.cmd(&["CONFIG", "SET", "maxmemory", "1"]).await;

    for (peer, number) in [(&mut other, 9), (&mut holder, 3)] {
        let full = peer.try_acquire(number, 60_000, true).await;
        let text = full.expect_err("memory is full").to_string();
        assert!(text.contains("OOM"), "{text}");
    }
    assert!(holder.renew(1, 50_000).await, "renewing passes");
    assert_eq!(holder.ask(2, 60_000).await, "waiting", "asking passes");
    assert!(holder.open().await > fence, "raising the counter passes");
    assert!(holder.release(1).await, "releasing passes");
    assert_eq!(holder.holder().await, Some(token(2)), "and hands over");
    assert!(holder.release(2).await);
    assert_eq!(server.keys("lock:{*").await, Vec::<String>::new());
}

#[tokio::test]
async fn a_full_memory_does_not_number_grants_that_are_not_made() {
    let server = RedisServer::start().await;
    let mut peer = Peer::new(&server, "counter", true).await;
    peer.open().await;
    peer.acquire(1, 60_000, true).await;
    peer.acquire(2, 60_000, true).await;
    let owner = RedisServer::owner_key(&peer.lock);
    let _: i64 = peer.cmd(&["DEL", &owner]).await;
    let _: () = peer.cmd(&["CONFIG", "SET", "maxmemory", "1"]).await;
    // The head is taken out of the queue first, so what follows passes too.
    assert_eq!(peer.acquire(3, 60_000, false).await[1], "busy");
    assert_eq!(peer.holder().await, Some(token(2)));
}

#[tokio::test]
async fn all_digits_of_the_fence_are_kept_and_it_grows_across_data_loss() {
    let server = RedisServer::start().await;
    let mut peer = Peer::new(&server, "fence", true).await;
    peer.open().await;
    let mut last = 0;
    for number in 0..20 {
        if number % 5 == 4 {
            let _: () = peer.cmd(&["FLUSHALL"]).await;
        }
        let answer = peer.acquire(number, 60_000, true).await;
        let stored: String = peer.cmd(&["GET", RedisServer::FENCE_KEY]).await;
        assert_eq!(answer[2], stored, "reply and server differ");
        let fence: u64 = stored.parse().expect("digits only");
        assert!(fence > last, "{fence} after {last}");
        last = fence;
        assert!(peer.release(number).await);
    }
}

#[tokio::test]
async fn a_foreign_holder_is_respected_and_never_touched() {
    let server = RedisServer::start().await;
    let mut peer = Peer::new(&server, "foreign", true).await;
    let owner = RedisServer::owner_key(&peer.lock);
    for ttl in [&["PX", "60000"][..], &[]] {
        let mut words = vec!["SET", &owner, "somebody else", "NX"];
        words.extend(ttl);
        let _: () = peer.cmd(&words).await;
        let answer = peer.acquire(1, 1_000, false).await;
        assert_eq!(answer[1], "busy");
        assert_eq!(answer[4], "somebody else");
        assert_eq!(peer.acquire(2, 1_000, true).await[1], "waiting");
        assert!(!peer.renew(2, 1_000).await);
        assert!(!peer.release(2).await);
        assert!(!peer.leave(2, 1_000).await);
        assert_eq!(peer.holder().await.as_deref(), Some("somebody else"));
        let left = peer.ttl().await;
        assert_eq!(left > 0, !ttl.is_empty(), "its ttl is its own: {left}");
        let _: () = peer.cmd(&["FLUSHALL"]).await;
    }
}

#[tokio::test]
async fn a_renewal_never_makes_a_key() {
    let server = RedisServer::start().await;
    let mut peer = Peer::new(&server, "renewal", true).await;
    assert!(!peer.renew(1, 60_000).await);
    assert_eq!(server.keys("*").await, Vec::<String>::new());
}

// Section: guarantees.md#nothing-is-left-behind
#[tokio::test]
async fn every_key_of_a_lock_has_a_ttl() {
    let server = RedisServer::start().await;
    let mut peer = Peer::new(&server, "ttl", true).await;
    peer.acquire(1, 1_000, true).await;
    peer.acquire(2, 1_000, true).await;
    let keys = server.keys("lock:{*").await;
    assert_eq!(keys.len(), 3, "{keys:?}");
    for key in &keys {
        let left: i64 = peer.cmd(&["PTTL", key]).await;
        assert!((1..=60_000).contains(&left), "{key}: {left}");
    }
}
