//! A renewal can note the grant of its holder, for queries while the holder does not answer.
//!
//! Section: guarantees.md#looking-at-a-lock

use redis::Value;
use tests::{Peer, RedisServer, token};

const TTL: &str = "60000";
const FENCE: &str = "77";
/// Five seconds, in microseconds.
const HELD: u64 = 5_000_000;

/// The server's time in microseconds.
async fn time(peer: &mut Peer) -> u64 {
    let (seconds, micros): (u64, u64) = peer.cmd(&["TIME"]).await;
    seconds * 1_000_000 + micros
}

/// A renewal by a peer that has held the lock for `HELD`.
async fn renew(peer: &mut Peer, number: u32) -> String {
    let (token, held) = (token(number), HELD.to_string());
    let kind = peer.kind.clone();
    let args = [&*token, TTL, &*kind, FENCE, &*held];
    let answer = peer.call("renew", &args).await;
    redis::from_redis_value(answer.expect("the script runs")).expect("a name")
}

/// The same, as one of many calls.
async fn renew_with_others(peer: &mut Peer, number: u32) -> Vec<Value> {
    let (name, channel) = (token(number), peer.channel.clone());
    let renewal = format!("={TTL} {FENCE} {HELD}");
    // Two of the same lock.
    let owner = RedisServer::owner_key(&peer.lock);
    let mut cmd = redis::cmd("EVAL");
    cmd.arg(tests::script_text("many")).arg(3);
    cmd.arg(RedisServer::FENCE_KEY).arg(&owner).arg(&owner);
    cmd.arg(channel).arg(0);
    for _ in 0..2 {
        cmd.arg(&name).arg(&renewal);
    }
    let answer = cmd.query_async(&mut peer.connection).await;
    answer.expect("the script runs")
}

/// Fails unless the note says what a renewal between two times has told.
async fn assert_noted(peer: &mut Peer, number: u32, earliest: u64, latest: u64) {
    let note = peer.note(number).await.expect("a note");
    let (fence, since) = note.split_once(' ').expect("two numbers");
    let since: u64 = since.parse().expect("a time");
    assert_eq!(fence, FENCE);
    assert!((earliest - HELD..=latest - HELD).contains(&since), "{note}");
    let key = RedisServer::note_key(&peer.lock, &token(number));
    let left: i64 = peer.cmd(&["PTTL", &key]).await;
    assert!((1..=60_000).contains(&left), "it lasts {left} ms");
}

#[tokio::test]
async fn a_renewal_notes_the_grant_for_as_long_as_the_lease() {
    let server = RedisServer::start().await;
    for kind in ["x", "r", "p2"] {
        let mut peer = Peer::new(&server, "noted", true).await.of_kind(kind);
        assert_eq!(peer.acquire(1, 60_000, true).await[1], "granted");
        assert!(peer.renew(1, 60_000).await);
        assert_eq!(peer.note(1).await, None, "it tells nothing");
        let earliest = time(&mut peer).await;
        assert_eq!(renew(&mut peer, 1).await, token(1));
        let latest = time(&mut peer).await;
        assert_noted(&mut peer, 1, earliest, latest).await;
        let released = peer.call("release", &[&token(1), "", "", "1"]).await;
        let name: String = redis::from_redis_value(released.expect("it runs")).expect("a name");
        assert_eq!(name, token(1));
        assert_eq!(server.keys("lock:{*").await, [""; 0], "{kind}");
    }
}

#[tokio::test]
async fn a_renewal_among_many_calls_notes_the_grant_too() {
    let server = RedisServer::start().await;
    let mut peer = Peer::new(&server, "noted", true).await;
    assert_eq!(peer.acquire(1, 30_000, true).await[1], "granted");
    let earliest = time(&mut peer).await;
    let answers = renew_with_others(&mut peer, 1).await;
    assert_eq!(answers[1..], [Value::Int(1), Value::Int(1)]);
    let latest = time(&mut peer).await;
    assert_noted(&mut peer, 1, earliest, latest).await;
    assert!(peer.ttl().await > 30_000, "it is extended");
}

#[tokio::test]
async fn who_does_not_hold_the_lock_notes_nothing() {
    let server = RedisServer::start().await;
    for kind in ["x", "r"] {
        let mut peer = Peer::new(&server, "noted", true).await.of_kind(kind);
        assert_eq!(peer.acquire(1, 60_000, true).await[1], "granted");
        assert_eq!(renew(&mut peer, 2).await, format!("-{}", token(2)));
        if kind == "x" {
            let answers = renew_with_others(&mut peer, 2).await;
            assert_eq!(answers[1..], [Value::Int(0), Value::Int(0)]);
        }
        assert_eq!(peer.note(2).await, None);
        assert!(peer.release(1).await);
    }
}

#[tokio::test]
async fn a_missing_right_to_the_note_fails_no_renewal() {
    let server = RedisServer::start().await;
    let mut peer = Peer::new(&server, "noted", true).await;
    assert_eq!(peer.acquire(1, 60_000, true).await[1], "granted");
    let owner = format!("~{}", RedisServer::owner_key("noted"));
    let fence = format!("~{}", RedisServer::FENCE_KEY);
    let user = [
        "ACL",
        "SETUSER",
        "shop",
        "on",
        ">secret",
        "resetkeys",
        "+@all",
    ];
    server.cmd(&[&user[..], &[&*owner, &*fence]].concat()).await;
    let () = peer.cmd(&["AUTH", "shop", "secret"]).await;
    assert_eq!(renew(&mut peer, 1).await, token(1));
    let answers = renew_with_others(&mut peer, 1).await;
    assert_eq!(answers[1..], [Value::Int(1), Value::Int(1)]);
    assert_eq!(server.keys("*:n:*").await, [""; 0]);
}
