//! Passwords, and what a user of the server must be allowed to do.

use std::time::Duration;

use lock_runtime::inspect::GrantEnd;
use lock_runtime::{LockConfig, LockError, LockGuard, LockManager};
use tests::{RedisServer, within};
use tokio::task::JoinSet;

use crate::{TIME_LIMIT, config, connect, unavailable, works_end_to_end};

/// What the scripts and the connections use; `client|id`, `client|kill`, `info` and `script|load` may be refused.
const COMMANDS: [&str; 23] = [
    "+eval",
    "+evalsha",
    "+get",
    "+set",
    "+del",
    "+exists",
    "+pexpire",
    "+pttl",
    "+incr",
    "+incrby",
    "+time",
    "+publish",
    "+subscribe",
    "+zadd",
    "+zpopmin",
    "+zscore",
    "+zrem",
    "+zrange",
    "+zcard",
    "+zcount",
    "+zremrangebyscore",
    "+scan",
    "+hello",
];

/// Soon enough to say that nothing was waited for.
const AT_ONCE: Duration = Duration::from_secs(3);

/// A server with a user who may do these things alone.
async fn server_with_user(rights: &[&str]) -> (RedisServer, LockConfig) {
    let server = RedisServer::start().await;
    let user = [
        "ACL",
        "SETUSER",
        "shop",
        "on",
        ">secret",
        "resetchannels",
        "-@all",
    ];
    server.cmd(&[&user, rights].concat()).await;
    let config = config(server.url_with_user("shop", "secret"));
    (server, config.connect_timeout(TIME_LIMIT / 2))
}

fn without(command: &str) -> Vec<&'static str> {
    let mut rights = vec!["~lock:*", "&lock:*"];
    rights.extend(COMMANDS.iter().filter(|it| **it != command));
    rights
}

// Section: operations.md#what-a-managed-service-forbids, protocol.md#rights
#[tokio::test]
async fn the_documented_commands_are_enough() {
    let (server, config) = server_with_user(&without("")).await;
    works_end_to_end(&server, config).await;
    assert_eq!(server.errors("WRONGPASS").await, 0);
}

#[tokio::test]
async fn a_history_needs_rights_of_its_own() {
    let (server, config) = server_with_user(&without("")).await;
    let (keeping, others) = (config.clone().history(5), connect(config).await);
    let refused = connect(keeping.clone()).await;
    let refused = refused.lock("key").acquire().await.unwrap_err();
    assert!(refused.to_string().contains("NOPERM"), "{refused}");
    let rights = ["+lpush", "+ltrim", "+lpop", "+lrange"];
    server
        .cmd(&[&["ACL", "SETUSER", "shop"], &rights[..]].concat())
        .await;
    let locks = connect(keeping).await;
    let released = locks.lock("key").acquire().await.unwrap();
    assert!(released.release_confirmed().await.unwrap());
    let ends = async || {
        let known = locks.history("key").await.unwrap();
        known.iter().map(|it| it.end).collect::<Vec<_>>()
    };
    // Nobody is kept from revoking a lock.
    let _first = locks.lock("key").acquire().await.unwrap();
    assert_eq!(others.force_release("key").await.unwrap(), 1);
    assert_eq!(ends().await[0], Some(GrantEnd::Expired));
    server.cmd(&["ACL", "SETUSER", "shop", "+lpushx"]).await;
    let _second = locks.lock("key").acquire().await.unwrap();
    assert_eq!(others.force_release("key").await.unwrap(), 1);
    assert_eq!(ends().await[0], Some(GrantEnd::Revoked));
}

#[tokio::test]
async fn a_connection_has_a_name_where_it_may() {
    let (server, config) = server_with_user(&without("")).await;
    let names = async || {
        let clients = server.cmd(&["CLIENT", "LIST"]).await;
        let clients: String = redis::from_redis_value(clients).unwrap();
        let name = format!("name=lock-runtime:{}@", std::process::id());
        clients.matches(&name).count()
    };
    let _nameless = connect(config.clone()).await;
    assert_eq!(names().await, 0);
    server
        .cmd(&["ACL", "SETUSER", "shop", "+client|setname"])
        .await;
    let _named = connect(config.pool_size(2)).await;
    assert_eq!(names().await, 2);
}

#[tokio::test]
async fn a_prefix_of_its_own_needs_rights_of_its_own() {
    let (server, config) = server_with_user(&without("")).await;
    let (text, took) = unavailable(LockManager::connect(config.clone().prefix("shop"))).await;
    assert!(text.contains("permission"), "{text}");
    assert!(took < AT_ONCE, "{took:?}");
    server
        .cmd(&["ACL", "SETUSER", "shop", "~shop:*", "&shop:*"])
        .await;
    works_end_to_end(&server, config.prefix("shop")).await;
}

// Section: guarantees.md#the-body-does-not-begin-without-the-lock, protocol.md#rights
#[tokio::test]
async fn another_database_needs_the_right_to_select() {
    let (server, _) = server_with_user(&without("")).await;
    let url = format!("{}/1", server.url_with_user("shop", "secret"));
    let config = config(url).connect_timeout(TIME_LIMIT / 2);
    let (text, took) = unavailable(LockManager::connect(config.clone())).await;
    assert!(text.contains("permission"), "{text}");
    assert!(took < AT_ONCE, "{took:?}");
    server.cmd(&["ACL", "SETUSER", "shop", "+select"]).await;
    let locks = connect(config).await;
    let request = locks.lock("key").wait(TIME_LIMIT);
    request.acquire().await.unwrap().release();
}

// Section: guarantees.md#the-body-does-not-begin-without-the-lock
#[tokio::test]
async fn a_missing_right_to_the_channel_shows_at_connect() {
    let mut rights = without("");
    rights.retain(|right| !right.starts_with('&'));
    let (_server, config) = server_with_user(&rights).await;
    let (text, took) = unavailable(LockManager::connect(config)).await;
    assert!(text.contains("channel"), "{text}");
    assert!(took < AT_ONCE, "{took:?}");
}

// Section: guarantees.md#the-body-does-not-begin-without-the-lock
#[tokio::test]
async fn a_missing_right_to_a_command_fails_at_once() {
    for command in ["+eval", "+publish", "+subscribe"] {
        let (_server, config) = server_with_user(&without(command)).await;
        let (text, took) = unavailable(LockManager::connect(config)).await;
        assert!(text.contains("permission"), "{command}: {text}");
        assert!(took < AT_ONCE, "{command}: {took:?}");
    }
    // What only the scripts use shows when they use it.
    for command in ["+incr", "+set"] {
        let (_server, config) = server_with_user(&without(command)).await;
        let outcome = async {
            let locks = LockManager::connect(config).await?;
            locks.lock("key").wait(TIME_LIMIT / 2).acquire().await
        };
        let (text, took) = unavailable(outcome).await;
        assert!(took < AT_ONCE, "{command}: {took:?}, {text}");
    }
    let (server, config) = server_with_user(&without("+zadd")).await;
    let locks = connect(config).await;
    let guard = locks.lock("key").acquire().await.unwrap();
    let waiting = locks.lock("key").wait(TIME_LIMIT / 2).acquire();
    let (text, took) = unavailable(waiting).await;
    assert!(took < AT_ONCE, "zadd: {took:?}, {text}");
    assert!(guard.release_confirmed().await.unwrap());
    assert_eq!(server.keys("lock:{*").await, [""; 0]);
}

// Section: guarantees.md#nothing-is-left-behind
/// They go to the server together, which refuses them as one.
#[tokio::test]
async fn a_key_that_is_forbidden_fails_alone() {
    let mut rights = without("");
    rights.retain(|right| !right.starts_with('~'));
    rights.extend(["~lock:fence", "~lock:{mine*"]);
    let (server, config) = server_with_user(&rights).await;
    let locks = connect(config).await;
    let mut crowd = JoinSet::new();
    for number in 0..256 {
        let mine = number % 16 > 0;
        let key = format!("{}{number}", if mine { "mine" } else { "theirs" });
        let request = locks.lock(key).wait(TIME_LIMIT);
        crowd.spawn(async move { (mine, request.acquire().await) });
    }
    let mut guards = Vec::new();
    for (mine, outcome) in within(TIME_LIMIT, crowd.join_all()).await {
        match outcome {
            Ok(guard) => guards.push(guard),
            Err(error) => assert!(!mine, "{error}"),
        }
    }
    assert_eq!(guards.len(), 240);
    let releases = guards.into_iter().map(LockGuard::release_confirmed);
    for release in releases.collect::<Vec<_>>() {
        assert!(within(TIME_LIMIT, release).await.unwrap());
    }
    assert_eq!(server.keys("lock:{*").await, [""; 0]);
}

// Section: guarantees.md#the-body-does-not-begin-without-the-lock
#[tokio::test]
async fn a_wrong_password_says_so_at_once_and_is_not_shown() {
    let server = RedisServer::builder().password("secret").start().await;
    for (url, says) in [
        (server.url_with_user("default", "hunter2"), "WRONGPASS"),
        (server.url_with_user("", "hunter2"), "WRONGPASS"),
        (server.url_with_user("nobody", "hunter2"), "WRONGPASS"),
        (server.url(), "NOAUTH"),
    ] {
        let config = config(&url).connect_timeout(TIME_LIMIT / 2);
        let (text, took) = unavailable(LockManager::connect(config.clone())).await;
        assert!(text.contains(says) || text.contains("assword"), "{text}");
        assert!(took < AT_ONCE, "{took:?}");
        let error = LockManager::connect(config).await.unwrap_err();
        let text = format!("{error:?} {error} {:?}", std::error::Error::source(&error));
        assert!(!text.contains("hunter2"), "{text}");
    }
}

#[tokio::test]
async fn a_password_that_changes_later_makes_calls_fail() {
    let (server, config) = server_with_user(&without("")).await;
    let locks = connect(config).await;
    server
        .cmd(&["ACL", "SETUSER", "shop", "resetpass", ">other"])
        .await;
    server.kill_all_clients().await;
    let request = locks.lock("key").wait(TIME_LIMIT / 2);
    let outcome = within(TIME_LIMIT, request.acquire()).await;
    assert!(
        matches!(outcome, Err(LockError::Unavailable { .. })),
        "{outcome:?}"
    );
    // And when it is right again, all is well.
    server
        .cmd(&["ACL", "SETUSER", "shop", "resetpass", ">secret"])
        .await;
    let works = async || {
        let request = locks.lock("key").wait(Duration::from_millis(100));
        request.acquire().await.is_ok()
    };
    tests::eventually(TIME_LIMIT, works).await;
}
