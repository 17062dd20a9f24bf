//! What a history costs on a Redis server, what ends in it without a word of the holder, and how it is bounded.

use std::time::Duration;

use lock_runtime::inspect::GrantEnd;
use tests::{
    LONG, RedisServer, TIME_LIMIT, Worker, connect, eventually, queued, release, take, take_turn,
};

use crate::{ends, history};

/// The key of the log of a lock.
fn log_key(key: &str) -> String {
    format!("{}:l", RedisServer::owner_key(key))
}

#[tokio::test]
async fn a_holder_that_is_killed_is_remembered_as_expired() {
    let server = RedisServer::start().await;
    for (key, layout) in [("shared", ""), ("declared", "&layout=declared")] {
        let url = format!("{}?history=5{layout}", server.url());
        let args = ["holder", &url, "exclusive", key, "1000"];
        let mut worker = Worker::spawn(env!("CARGO_BIN_EXE_worker"), args).await;
        let fence = worker.fence().await;
        worker.kill().await;
        let locks = connect(&url).await;
        let next = take(&locks, key, LONG).await;
        let known = history(&locks, key).await;
        assert_eq!(ends(&known), [None, Some(GrantEnd::Expired)], "{known:?}");
        assert_eq!(known[1].fencing_token.get(), fence);
        assert_eq!(known[1].process, Some(worker.pid()));
        assert_eq!(known[1].until, Some(known[0].since), "seen by the next");
        release(next).await;
    }
}

#[tokio::test]
async fn a_lease_that_nobody_follows_is_remembered_as_expired() {
    let server = RedisServer::start().await;
    let locks = connect(format!("{}?history=5", server.url())).await;
    let _guard = take(&locks, "key", LONG).await;
    server.cmd(&["DEL", &RedisServer::owner_key("key")]).await;
    let known = history(&locks, "key").await;
    assert_eq!(ends(&known), [Some(GrantEnd::Expired)]);
    assert_eq!(known[0].until, None, "nobody has seen when");
}

#[tokio::test]
async fn with_a_history_a_cycle_is_two_calls_and_without_it_the_same_as_ever() {
    let server = RedisServer::start().await;
    for (url, has_log) in [
        (server.url(), false),
        (format!("{}?history=5", server.url()), true),
    ] {
        let locks = connect(&url).await;
        take_turn(&locks, "warm").await;
        let mut monitor = server.monitor().await;
        take_turn(&locks, "key").await;
        let commands = monitor.commands(&server).await;
        let names: Vec<_> = commands.iter().map(|it| &*it[0]).collect();
        assert_eq!(names, ["evalsha", "evalsha"]);
        let found = server.keys("*:l").await;
        assert_eq!(!found.is_empty(), has_log, "{found:?}");
    }
}

#[tokio::test]
async fn without_a_history_no_script_touches_a_log() {
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let first = take(&locks, "key", LONG).await;
    let next = queued(&locks, locks.lock("key").ttl(LONG).wait_forever()).await;
    release(first).await;
    release(next.await.unwrap()).await;
    for command in ["lpush", "lpushx", "ltrim", "lpop", "lrange"] {
        assert_eq!(server.calls(command).await, 0, "{command}");
    }
}

#[tokio::test]
async fn a_log_outlives_a_month_and_not_for_ever() {
    let server = RedisServer::start().await;
    let locks = connect(format!("{}?history=5", server.url())).await;
    take_turn(&locks, "key").await;
    let left = server.cmd(&["PTTL", &log_key("key")]).await;
    let left: u64 = redis::from_redis_value(left).unwrap();
    let days = Duration::from_millis(left).as_secs() / 86_400;
    assert!((31..=32).contains(&days), "{days}");
}

/// Nobody listens for a waiter whose connections are gone: the grant is undone.
#[tokio::test]
async fn a_grant_that_nobody_heard_of_is_not_remembered() {
    let server = RedisServer::start().await;
    let url = format!("{}?history=5", server.url());
    let locks = connect(&url).await;
    let guard = take(&locks, "key", LONG).await;
    let fence = guard.fencing_token();
    let args = ["holder", &url, "exclusive", "key", "60000"];
    let mut worker = Worker::spawn(env!("CARGO_BIN_EXE_worker"), args).await;
    server.queued("key", 1).await;
    worker.kill().await;
    // One that holds the lock listens.
    let channels = ["PUBSUB", "CHANNELS", "lock:grant:*"];
    eventually(TIME_LIMIT, async || {
        let channels: Vec<String> = redis::from_redis_value(server.cmd(&channels).await).unwrap();
        channels.len() == 1
    })
    .await;
    release(guard).await;
    let known = history(&locks, "key").await;
    assert_eq!(ends(&known), [Some(GrantEnd::Released)], "{known:?}");
    assert_eq!(known[0].fencing_token, fence);
}

#[tokio::test]
async fn a_user_without_the_right_to_logs_is_told_so() {
    let server = RedisServer::start().await;
    let user = ["ACL", "SETUSER", "shop", "on", ">secret", "~*", "&*"];
    let rights = ["+@all", "-lpush", "-lpushx"];
    server.cmd(&[&user[..], &rights].concat()).await;
    let url = server.url_with_user("shop", "secret");
    let locks = connect(format!("{url}?history=5")).await;
    let refused = locks.lock("key").ttl(LONG).acquire().await.unwrap_err();
    assert!(refused.to_string().contains("LPUSH"), "{refused}");
    // A revocation needs none.
    let keeping = connect(format!("{}?history=5", server.url())).await;
    let _guard = take(&keeping, "other", LONG).await;
    assert_eq!(locks.force_release("other").await.unwrap(), 1);
}
