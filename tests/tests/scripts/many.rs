//! Many calls that are sent as one are each done as if they had come alone.
//!
//! Section: guarantees.md#nothing-is-left-behind

use redis::{FromRedisValue as _, Value};
use tests::{
    Peer, RedisServer,
    Step::{Acquire, Join, Release, Renew},
    token,
};

const TTL: u32 = 60_000;

/// A waiter's answer, or that of a release which hands over.
fn texts(answer: &Value) -> Vec<String> {
    match answer {
        Value::Array(_) => Vec::from_redis_value_ref(answer).expect("texts"),
        answer => vec![String::from_redis_value_ref(answer).expect("a text")],
    }
}

fn fence(answer: &Value) -> i64 {
    match answer {
        Value::Int(fence) => *fence,
        _ => panic!("{answer:?} is no fence"),
    }
}

fn error(answer: &Value) -> String {
    match answer {
        Value::ServerError(error) => format!("{error:?}"),
        _ => panic!("{answer:?} is no error"),
    }
}

#[tokio::test]
async fn in_their_order() {
    let server = RedisServer::start().await;
    let mut peer = Peer::new(&server, "a", true).await;
    let raised = i64::try_from(peer.open().await).expect("a small number");
    let calls = [
        ("a", Acquire(1, TTL)),
        ("b", Acquire(2, TTL)),
        ("a", Acquire(3, TTL)),
        ("a", Renew(3, TTL)),
        ("a", Renew(1, TTL / 2)),
        ("a", Release(1)),
        ("b", Release(2)),
        ("b", Release(2)),
        ("b", Acquire(4, TTL)),
    ];
    let answers = peer.many(&calls).await;
    let fences = [0, 1, 8].map(|it| fence(&answers[it]));
    assert_eq!(fences, [1, 2, 3].map(|it| raised + it));
    assert_eq!(texts(&answers[2])[..2], [token(3), "waiting".into()]);
    assert_eq!(answers[3], Value::Int(0), "it does not hold the lock yet");
    assert_eq!(answers[4], Value::Int(1));
    assert_eq!(texts(&answers[5]), [token(1)], "handed over");
    assert_eq!(answers[6], Value::Int(1));
    assert_eq!(texts(&answers[7]), [format!("-{}", token(2))]);
    assert_eq!(peer.holder().await, Some(token(3)));
    let handed: i64 = peer.cmd(&["GET", RedisServer::FENCE_KEY]).await;
    assert_eq!(
        handed,
        raised + 5,
        "four acquire, and one is handed the lock"
    );
    assert!(peer.ttl().await <= 3_000, "a grant has to be claimed soon");

    let again = peer.many(&[("a", Acquire(3, TTL)), ("a", Renew(3, TTL))]);
    let again = again.await;
    assert!(texts(&again[0])[0].starts_with(&token(3)), "it is its own");
    assert!(peer.ttl().await > 30_000, "it was not extended");
    peer.many(&[("a", Release(3)), ("b", Release(4))]).await;
    assert_eq!(server.keys("lock:{*").await, [""; 0]);
}

#[tokio::test]
async fn an_error_is_that_of_its_own_call() {
    let server = RedisServer::start().await;
    let mut peer = Peer::new(&server, "a", true).await;
    peer.open().await;
    let wrong = RedisServer::owner_key("wrong");
    let _: i64 = peer.cmd(&["RPUSH", &wrong, "not ours"]).await;
    let calls = [
        ("a", Acquire(1, TTL)),
        ("wrong", Acquire(2, TTL)),
        ("wrong", Renew(2, TTL)),
        ("wrong", Release(2)),
        ("a", Release(1)),
    ];
    let answers = peer.many(&calls).await;
    fence(&answers[0]);
    for answer in &answers[1..4] {
        let error = error(answer);
        assert!(error.contains("WRONGTYPE"), "{error}");
    }
    assert_eq!(answers[4], Value::Int(1));
    assert_eq!(server.keys("lock:{*").await, [wrong]);
}

#[tokio::test]
async fn in_full_memory_locks_are_released_and_none_is_half_taken() {
    let server = RedisServer::start().await;
    let mut peer = Peer::new(&server, "a", true).await;
    peer.open().await;
    peer.many(&[("a", Acquire(1, TTL)), ("b", Acquire(2, TTL))])
        .await;
    let _: () = peer.cmd(&["CONFIG", "SET", "maxmemory", "1"]).await;
    let before: i64 = peer.cmd(&["GET", RedisServer::FENCE_KEY]).await;
    let calls = [("c", Acquire(3, TTL)), ("a", Acquire(4, TTL))];
    for answer in peer.many(&calls).await {
        let error = error(&answer);
        assert!(error.contains("OOM"), "{error}");
    }
    let after: i64 = peer.cmd(&["GET", RedisServer::FENCE_KEY]).await;
    assert_eq!(after, before);
    let calls = [("a", Renew(1, TTL)), ("a", Release(1)), ("b", Release(2))];
    for answer in peer.many(&calls).await {
        assert_eq!(answer, Value::Int(1));
    }
    assert_eq!(server.keys("lock:{*").await, [""; 0]);
}

#[tokio::test]
async fn the_order_of_the_queue_is_kept() {
    let server = RedisServer::start().await;
    let mut peer = Peer::new(&server, "a", true).await;
    peer.open().await;
    peer.many(&[("a", Acquire(1, TTL)), ("a", Acquire(2, TTL))])
        .await;
    // What the server does when a holder has crashed.
    let owner = RedisServer::owner_key("a");
    let _: i64 = peer.cmd(&["DEL", &owner]).await;
    let answers = peer
        .many(&[("a", Acquire(3, TTL)), ("a", Release(1))])
        .await;
    assert_eq!(texts(&answers[0])[1], "waiting");
    assert_eq!(texts(&answers[1]), [format!("-{}", token(1))]);
    assert_eq!(peer.holder().await, Some(token(2)));
}

/// The first of the calls finds the lock free, and is handed it together with all who wait.
#[tokio::test]
async fn who_joins_behind_a_hand_over_is_noted_and_the_queue_has_a_ttl() {
    let server = RedisServer::start().await;
    let mut peer = Peer::new(&server, "a", true).await;
    peer.open().await;
    peer.many(&[("a", Acquire(1, TTL)), ("a", Join(2, TTL))])
        .await;
    // As when the lease has ended.
    let owner = RedisServer::owner_key("a");
    let _: i64 = peer.cmd(&["DEL", &owner]).await;
    let answers = peer.many(&[("a", Join(3, TTL)), ("a", Join(4, TTL))]).await;
    assert_eq!(peer.holder().await, Some(token(2)));
    for key in [RedisServer::queue_key("a"), RedisServer::seen_key("a")] {
        let left: i64 = peer.cmd(&["PTTL", &key]).await;
        assert!((1..=60_000).contains(&left), "{key}: {left}");
    }
    assert_eq!(texts(&answers[1])[5], "0", "nobody else waits");
    assert!(peer.release(2).await);
    assert_eq!(peer.holder().await, Some(token(4)), "it is passed over");
}

// Section: guarantees.md#fencing-tokens-grow
/// Who releases a lock that it does not know to hold, in the call that hands it the lock.
#[tokio::test]
async fn a_lock_that_is_free_again_after_a_hand_over_gets_a_larger_number() {
    let server = RedisServer::start().await;
    let mut peer = Peer::new(&server, "b", true).await;
    peer.open().await;
    peer.acquire(1, TTL, true).await;
    assert_eq!(peer.acquire(2, TTL, true).await[1], "waiting");
    let calls = [
        ("a", Acquire(3, TTL)),
        ("b", Release(1)),
        ("b", Release(2)),
        ("b", Acquire(4, TTL)),
    ];
    let answers = peer.many(&calls).await;
    assert_eq!(texts(&answers[1]), [token(1)], "handed over");
    assert_eq!(peer.holder().await, Some(token(4)));
    let last = match &answers[3] {
        Value::Int(fence) => fence.to_string(),
        text => texts(text)[0].split('\n').nth(1).expect("a fence").into(),
    };
    let counter: String = peer.cmd(&["GET", RedisServer::FENCE_KEY]).await;
    assert_eq!(last, counter, "the grant in between has a larger number");
}

#[tokio::test]
async fn a_counter_that_has_lost_its_data_is_raised() {
    let server = RedisServer::start().await;
    let mut peer = Peer::new(&server, "a", true).await;
    let before = peer.open().await;
    let _: () = peer.cmd(&["FLUSHALL"]).await;
    let answers = peer
        .many(&[("a", Acquire(1, TTL)), ("b", Acquire(2, TTL))])
        .await;
    let fences = [0, 1].map(|it| {
        let (name, fence) = texts(&answers[it])[0]
            .split_once('\n')
            .map(|(name, fence)| (name.to_owned(), fence.to_owned()))
            .expect("a fence");
        assert_eq!(name, token([1, 2][it]));
        fence.parse::<u64>().expect("all digits")
    });
    assert!(before < fences[0] && fences[0] < fences[1], "{fences:?}");
    let after = peer.many(&[("c", Acquire(3, TTL)), ("d", Acquire(4, TTL))]);
    let after = after.await.iter().map(fence).collect::<Vec<_>>();
    assert_eq!(after[0].unsigned_abs(), fences[1] + 1);
    assert_eq!(after[1], after[0] + 1);
}
