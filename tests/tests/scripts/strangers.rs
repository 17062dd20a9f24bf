//! Arguments and values that this client never writes: of other clients, and of what has gone wrong.

use lock_runtime::LockError;
use lock_runtime::inspect::Kind;
use redis::{FromRedisValue as _, Value};
use tests::{Peer, RedisServer, connect, token};

// Section: guarantees.md#nothing-is-left-behind
#[tokio::test]
async fn a_cooldown_of_zero_releases_at_once() {
    let server = RedisServer::start().await;
    for kind in ["x", "r"] {
        let mut peer = Peer::new(&server, "cooldown", true).await.of_kind(kind);
        for cooldown in ["0", "-5", "0.3", "soon", "nan"] {
            peer.acquire(1, 60_000, true).await;
            let args = [&*token(1), "", cooldown];
            let answer = peer.call("release", &args).await;
            let answer = answer.unwrap_or_else(|error| panic!("{kind} {cooldown}: {error}"));
            let name = String::from_redis_value(answer).expect("a name");
            assert_eq!(name, token(1), "{kind} {cooldown}");
            assert_eq!(server.keys("lock:{*").await, [""; 0], "{kind} {cooldown}");
        }
    }
}

#[tokio::test]
async fn who_tried_once_may_ask() {
    let server = RedisServer::start().await;
    let mut peer = Peer::new(&server, "tried", true).await;
    let member = format!("x:60000:\n{}", token(1));
    let channel = peer.channel.clone();
    for standing in ["gone", "granted"] {
        let answer = peer.call("ask", &[&channel, &member]).await;
        let answer = Vec::<Value>::from_redis_value(answer.expect("it runs"));
        let answer = Vec::from_redis_value_ref(&answer.expect("a list")[2]);
        let answer: Vec<String> = answer.expect("texts");
        assert_eq!(answer[..2], [token(1), standing.to_owned()]);
        if standing == "gone" {
            peer.acquire(1, 1_000, false).await;
        }
    }
    assert!(peer.ttl().await > 30_000, "it was not extended");
}

#[tokio::test]
async fn a_position_without_a_kind_is_that_of_an_exclusive_lock() {
    let server = RedisServer::start().await;
    let mut peer = Peer::new(&server, "kind", true).await;
    let channel = peer.channel.clone();
    let args = [&*token(1), "60000", &*channel, "", "123"];
    peer.call("acquire", &args).await.expect("it runs");
    assert_eq!(peer.holder().await, Some(token(1)));
    assert!(peer.release(1).await);
}

#[tokio::test]
async fn a_kind_that_is_none_is_refused() {
    let server = RedisServer::start().await;
    let mut peer = Peer::new(&server, "kind", true).await;
    let channel = peer.channel.clone();
    for kind in ["123", "w", "p", "p0", "r2", "x\ny"] {
        let args = [&*token(1), "60000", &*channel, kind];
        let error = peer.call("acquire", &args).await.expect_err("no kind");
        assert!(error.to_string().contains("kind"), "{kind}: {error}");
        assert_eq!(server.keys("*").await, [""; 0], "{kind}");
    }
}

#[tokio::test]
async fn a_foreign_value_that_looks_shared_lets_nobody_in() {
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let owner = RedisServer::owner_key("foreign");
    for (value, kind) in [("*r", "r"), ("*p3", "p3"), ("*p3", "p2"), ("*r", "x")] {
        let mut peer = Peer::new(&server, "foreign", true).await.of_kind(kind);
        for ttl in [&["PX", "60000"][..], &[]] {
            server
                .cmd(&[&["SET", &*owner, value][..], ttl].concat())
                .await;
            let answer = peer.acquire(1, 1_000, false).await;
            assert_eq!([&*answer[1], &*answer[4]], ["busy", value], "{kind}");
            assert_eq!(peer.acquire(2, 1_000, true).await[1], "waiting", "{kind}");
            assert_eq!(peer.ask(2, 1_000).await, "waiting", "{kind}");
            assert!(!peer.renew(2, 1_000).await);
            assert!(!peer.release(2).await);
            assert_eq!(peer.holder().await.as_deref(), Some(value));
            let left = peer.ttl().await;
            assert_eq!(left > 0, !ttl.is_empty(), "its ttl is its own: {left}");

            let status = locks.status("foreign").await.expect("an answer");
            assert_eq!(status.holders.len(), 1, "{status:?}");
            assert_eq!(&*status.holders[0].id, value);
            assert_eq!(locks.force_release("foreign").await.expect("an answer"), 1);
            assert_eq!(peer.ask(2, 60_000).await, "granted", "{kind}");
            assert!(peer.release(2).await);
            assert_eq!(server.keys("lock:{*").await, [""; 0]);
        }
    }
}

#[tokio::test]
async fn a_member_that_cannot_be_read_is_passed_over() {
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    for kind in ["x", "r"] {
        let mut holder = Peer::new(&server, "member", true).await.of_kind(kind);
        let mut writer = Peer::new(&server, "member", true).await;
        holder.acquire(1, 60_000, true).await;
        for ttl in ["", "soon", "1000.5", "-1", "0"] {
            let args = [&*token(2), ttl, &*writer.channel.clone(), "x", "5"];
            writer.call("acquire", &args).await.ok();
        }
        let queue = RedisServer::queue_key("member");
        server.cmd(&["ZADD", &queue, "6", "nonsense"]).await;
        assert_eq!(
            writer.acquire(3, 60_000, true).await[1],
            "waiting",
            "{kind}"
        );
        assert_eq!(writer.ask(3, 60_000).await, "waiting", "{kind}");
        let status = locks.status("member").await.expect("an answer");
        assert_eq!(status.waiting, 1, "{kind}");
        assert!(holder.release(1).await);
        assert_eq!(writer.holder().await, Some(token(3)), "{kind}");
        assert!(writer.release(3).await);
    }
}

#[tokio::test]
async fn more_permits_than_ours_can_count_break_no_connection() {
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let mut peer = Peer::new(&server, "many", true)
        .await
        .of_kind("p5000000000");
    peer.acquire(1, 60_000, true).await;
    let before = server.subscribers().await;
    let acquire = locks.lock("many").permits(2).try_once().acquire();
    let error = acquire.await.expect_err("it is held with another number");
    assert!(matches!(error, LockError::Contended { .. }), "{error}");
    let status = locks.status("many").await.expect("an answer");
    assert_eq!(status.kind, Some(Kind::Permits(u32::MAX)));
    assert_eq!(server.subscribers().await, before);
}
