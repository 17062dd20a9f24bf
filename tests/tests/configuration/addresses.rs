//! What a URL and the setters choose.

use std::time::Duration;

use lock_runtime::{LockConfig, LockError, LockGuard, LockManager};
use tests::{RedisServer, timed, within};

use crate::{TIME_LIMIT, config, connect, works_end_to_end};

#[tokio::test]
async fn bad_urls_are_refused_and_not_shown() {
    for url in [
        "",
        "redis",
        "memory",
        "127.0.0.1:6379",
        "http://me:hunter2@localhost",
        "redis://",
        "redis://me:hunter2@localhost:port",
        "redis://me:hunter2@localhost/database",
        "redis://me:hunter2@localhost/-1",
        "redis://me:hunter2@localhost:99999",
        "redis://me:hunter2@localhost,elsewhere",
        "redis://me:hunter2@localhost?password=hunter2",
        "redis://me:1/hunter2@localhost",
        "redis://me:1?hunter2=@localhost",
        "redis-sentinel://me:hunter2@localhost/service",
        "redis+sentinel://me:hunter2@localhost",
        "redis+sentinel://localhost/service?sentinel_pass=hunter2",
        "redis+cluster://me:hunter2@localhost/2",
        "redis+unix:///redis.sock?db=-1&pass=hunter2",
        "redis+unix://",
        "redis+unix:///",
        "redis+unix://?db=1&pass=hunter2",
        "redis+unix://redis.sock",
        "redis+unix://me:hunter2@/redis.sock",
        "redis+unix:///redis.sock?db=one&pass=hunter2",
        "me:hunter2@localhost",
    ] {
        let error = within(TIME_LIMIT, LockManager::connect(url))
            .await
            .expect_err(url);
        let text = format!("{error} {error:?}");
        assert!(
            matches!(error, LockError::InvalidOptions { setting: "url", .. }),
            "{url}: {text}"
        );
        assert!(!text.contains("hunter2"), "{text}");
    }
}

#[tokio::test]
async fn no_text_of_a_manager_shows_the_password_or_what_is_private() {
    let server = RedisServer::builder().password("hunter2").start().await;
    let url = server.url_with_user("default", "hunter2");
    let config = LockConfig::new(&url).unwrap();
    let locks = connect(config.clone()).await;
    let request = locks.lock("key");
    let texts = format!("{config:?} {locks:?} {request:?}");
    let guard = request.acquire().await.unwrap();
    let hold = guard.hold(async {});
    let texts = format!(
        "{texts} {guard:?} {hold:?} {:?}",
        locks.scope(std::future::ready(()))
    );
    let status = locks.status("key").await.unwrap();
    let overview = locks.overview("*").await.unwrap();
    let texts = format!("{texts} {status:?} {overview:?}");
    for hidden in [
        "hunter2", "crowd", "lease", "owned", "settings", "target", "AtMost", "taken", "count",
    ] {
        assert!(!texts.contains(hidden), "{hidden}: {texts}");
    }
}

#[tokio::test]
async fn a_url_chooses_the_database() {
    let server = RedisServer::start().await;
    let locks = connect(config(format!("{}/3", server.url()))).await;
    let elsewhere = connect(config(format!("{}/4", server.url()))).await;
    let guard = locks.lock("key").acquire().await.unwrap();
    let other = elsewhere.lock("key").wait(Duration::ZERO).acquire().await;
    assert!(other.is_ok(), "other databases have other locks");
    // What is seen from here is database 0.
    assert_eq!(server.keys("*").await, [""; 0]);
    assert!(guard.release_confirmed().await.unwrap());
    works_end_to_end(&server, config(format!("{}/3", server.url()))).await;
}

// Section: guarantees.md#the-body-does-not-begin-without-the-lock
#[tokio::test]
async fn a_database_that_the_server_does_not_have_is_a_wrong_url() {
    let server = RedisServer::start().await;
    let config = config(format!("{}/99", server.url()));
    let config = config.connect_timeout(TIME_LIMIT);
    let (took, outcome) = timed(LockManager::connect(config)).await;
    let error = outcome.expect_err("there are 16");
    let text = error.to_string();
    assert!(text.starts_with("invalid url: "), "{text}");
    assert!(text.contains("database 99"), "{text}");
    assert!(!error.is_retryable());
    assert!(took < TIME_LIMIT / 4, "{took:?}");
}

#[tokio::test]
async fn a_url_with_another_scheme_says_what_to_write() {
    for (url, says) in [
        ("redis-sentinel://h/service", "`redis+sentinel://HOST"),
        ("rediss-sentinel://h/service", "`rediss+sentinel://HOST"),
        ("redis+sentinel://h", "names no service"),
        ("redis-cluster://h", "`redis+cluster://"),
        ("redis+cluster://h/2", "no databases"),
        ("redis://h:1,i:2", "several hosts"),
        ("unix:///redis.sock", "`redis+unix:///path`"),
        ("redis+unix://", "names no socket"),
        ("redis+unix://run/redis.sock", "`redis+unix:///path`"),
        ("http://h", "must begin with one of `memory:`, `redis://`"),
    ] {
        let text = LockConfig::new(url).expect_err(url).to_string();
        assert!(text.contains(says), "{url}: {text}");
    }
}

#[tokio::test]
async fn a_password_may_be_percent_encoded() {
    let server = RedisServer::start().await;
    let password = ">a/b?c#d@e%f:g h";
    let rights = [
        "ACL", "SETUSER", "shop", "on", password, "~*", "&*", "+@all",
    ];
    server.cmd(&rights).await;
    let encoded = "a%2Fb%3Fc%23d%40e%25f:g%20h";
    works_end_to_end(&server, config(server.url_with_user("shop", encoded))).await;
}

#[tokio::test]
async fn a_valkey_url_is_a_redis_url() {
    let server = RedisServer::start().await;
    let url = format!("valkey://{}/2?pool_size=2", server.addr());
    let _locks = connect(config(&url)).await;
    assert_eq!(server.listeners().await, 2);
    works_end_to_end(&server, config(&url)).await;
}

#[tokio::test]
async fn a_url_chooses_the_unix_socket() {
    let server = RedisServer::start().await;
    let url = format!("{}?db=2", server.unix_url());
    works_end_to_end(&server, config(&url)).await;
    let _locks = connect(config(&url)).await;
    let clients: String = redis::from_redis_value(server.cmd(&["CLIENT", "LIST"]).await).unwrap();
    let ours = clients.lines().filter(|line| line.contains("redis.sock:0"));
    assert!(
        ours.filter(|line| line.contains(" db=2 ")).count() > 0,
        "{clients}"
    );
}

#[tokio::test]
async fn four_connections_are_used() {
    let server = RedisServer::start().await;
    let four = config(server.url()).pool_size(4);
    let locks = connect(four.clone()).await;
    assert_eq!(server.listeners().await, 4);
    works_end_to_end(&server, four).await;

    let mut guards = Vec::new();
    for key in 0..64 {
        guards.push(locks.lock(key.to_string()).acquire().await.unwrap());
    }
    let fences: Vec<_> = guards.iter().map(LockGuard::fencing_token).collect();
    assert!(fences.is_sorted(), "{fences:?}");
    drop(guards);
    within(TIME_LIMIT, locks.shutdown()).await;
    assert_eq!(server.keys("lock:{*").await, [""; 0]);
}
