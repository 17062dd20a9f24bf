//! What is written for a lock of the setnx protocol, and what others write over it.
//!
//! Section: guarantees.md#beside-clients-of-other-kinds

use std::time::{Duration, SystemTime};

use lock_runtime::inspect::Severity;
use lock_runtime::{LockError, LockGuard, LockManager};
use redis::Value;
use tests::{
    LONG, Proxy, RedisServer, TIME_LIMIT, connect, eventually, poll_once, queued, release, take,
    within,
};
use tokio::task::JoinSet;

const KEY: &str = "orders";
const SECOND: Duration = Duration::from_secs(1);

async fn start() -> (RedisServer, LockManager) {
    let server = RedisServer::start().await;
    let locks = manager(&server, "").await;
    (server, locks)
}

async fn manager(server: &RedisServer, settings: &str) -> LockManager {
    let url = server.url().replace("redis://", "redis+setnx://");
    connect(format!("{url}?{settings}")).await
}

/// The time, as clients with a clock of their own know it.
fn since_1970() -> Duration {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.unwrap()
}

/// The same in ms.
fn now() -> u64 {
    u64::try_from(since_1970().as_millis()).unwrap()
}

async fn value(server: &RedisServer) -> Option<String> {
    match server.cmd(&["GET", KEY]).await {
        Value::BulkString(text) => Some(String::from_utf8(text).unwrap()),
        _ => None,
    }
}

async fn get_set(server: &RedisServer, time: u64) -> u64 {
    let Value::BulkString(before) = server.cmd(&["GETSET", KEY, &time.to_string()]).await else {
        panic!("it was free");
    };
    String::from_utf8(before).unwrap().parse().unwrap()
}

async fn try_now(locks: &LockManager) -> Result<LockGuard, LockError> {
    let request = locks.lock(KEY).ttl(LONG).wait(Duration::ZERO);
    within(TIME_LIMIT, request.acquire()).await
}

#[tokio::test]
async fn the_name_of_the_lock_is_the_key_and_its_value_the_time_of_its_end() {
    let server = RedisServer::start().await;
    let ends = |text: &str| text.parse::<f64>().unwrap();
    for (settings, per_second, offset) in [
        ("stamp=ms", 1000.0, 0.0),
        ("stamp=s", 1.0, 0.0),
        ("stamp=float", 1.0, 0.0),
        ("stamp=ms&offset=1m", 1000.0, 60.0),
        ("stamp=float&offset=90s", 1.0, 90.0),
    ] {
        let locks = manager(&server, settings).await;
        let before = since_1970();
        let guard = take(&locks, KEY, LONG).await;
        let written = value(&server).await.unwrap();
        let whole = written.bytes().all(|it| it.is_ascii_digit());
        assert_eq!(whole, !settings.contains("float"), "{written}");
        let left = ends(&written) / per_second + offset - before.as_secs_f64();
        // In whole seconds it is rounded up.
        assert!(
            (59.9..90.0).contains(&left),
            "{settings}: {written}, {left}"
        );
        release(guard).await;
        assert_eq!(server.keys("*").await, [""; 0]);
    }
}

#[tokio::test]
async fn a_template_names_the_same_key_as_text() {
    let (server, locks) = start().await;
    let item = "a:b {c}";
    for (name, key) in [
        (lock_runtime::key!("stock:{item}"), "stock:a:b {c}"),
        ("50%".parse(), "50%"),
    ] {
        let request = locks.lock(name).ttl(LONG);
        let guard = within(TIME_LIMIT, request.acquire()).await.unwrap();
        assert_eq!(server.cmd(&["EXISTS", key]).await, Value::Int(1), "{key}");
        release(guard).await;
    }
}

#[tokio::test]
async fn a_time_to_come_is_waited_for_and_one_that_is_over_is_taken_over_once() {
    let (server, locks) = start().await;
    let others = manager(&server, "").await;
    let later = (now() + 60_000).to_string();
    server.cmd(&["SET", KEY, &later]).await;
    match try_now(&locks).await.expect_err("it is held") {
        LockError::Contended { holder, .. } => {
            let holder = holder.unwrap();
            assert_eq!(*holder.id, *later);
            assert!(holder.remaining.unwrap() <= 60 * SECOND);
        }
        error => panic!("{error}"),
    }
    let later = (now() + 500).to_string();
    server.cmd(&["SET", KEY, &later]).await;
    let request = |locks: &LockManager| locks.lock(KEY).ttl(LONG).wait_forever();
    let mut waiters = JoinSet::new();
    for locks in [&locks, &others] {
        waiters.spawn(queued(locks, request(locks)).await);
    }
    let first = within(TIME_LIMIT, waiters.join_next()).await;
    let first = first.unwrap().unwrap().unwrap();
    assert!(now() >= later.parse().unwrap(), "before the time was over");
    assert!(value(&server).await.unwrap().parse::<u64>().unwrap() > now());
    assert!(matches!(
        try_now(&others).await,
        Err(LockError::Contended { .. })
    ));
    release(first).await;
}

#[tokio::test]
async fn who_comes_too_late_to_take_over_costs_nobody_the_lock() {
    for wait in [Duration::ZERO, TIME_LIMIT] {
        let (server, proxy, locks) = behind_a_proxy().await;
        let request = locks.lock(KEY).ttl(LONG).wait(wait).renew(false);
        let mut acquire = Box::pin(request.acquire());
        let theirs = write_over_a_takeover(&server, &proxy, &mut acquire).await;
        let guard = within(TIME_LIMIT, acquire).await.unwrap();
        assert_ne!(value(&server).await.unwrap(), theirs.to_string());
        release(guard).await;
        assert_eq!(server.keys("*").await, [""; 0]);
    }
}

#[tokio::test]
async fn a_lock_that_was_taken_over_is_left_with_the_time_that_was_written_over_it() {
    for wait in [Duration::ZERO, TIME_LIMIT] {
        let (server, proxy, locks) = behind_a_proxy().await;
        let request = locks.lock(KEY).ttl(LONG).wait(wait);
        let mut acquire = Box::pin(request.acquire());
        write_over_a_takeover(&server, &proxy, &mut acquire).await;
        drop(acquire);
        eventually(TIME_LIMIT, async || server.keys("*").await.is_empty()).await;
    }
}

/// The lock of a client that has not released it.
async fn behind_a_proxy() -> (RedisServer, Proxy, LockManager) {
    let server = RedisServer::start().await;
    server.cmd(&["SET", KEY, &(now() - 1000).to_string()]).await;
    let proxy = Proxy::start(server.addr());
    let url = proxy.url().replace("redis://", "redis+setnx://");
    let locks = connect(url).await;
    (server, proxy, locks)
}

/// Another client has seen the old time too, and writes its own one before ours is confirmed. It learns that the lock is
/// not expired any more.
async fn write_over_a_takeover(
    server: &RedisServer,
    proxy: &Proxy,
    acquire: &mut (impl Future + Unpin),
) -> u64 {
    proxy.replies().hold();
    assert!(poll_once(acquire).await.is_pending());
    within(TIME_LIMIT, proxy.replies().held()).await;
    let theirs = now() + 60_000;
    assert!(get_set(server, theirs).await > now());
    proxy.replies().pass();
    theirs
}

#[tokio::test]
async fn a_time_that_another_client_writes_later_ends_the_lease() {
    let (server, locks) = start().await;
    let guard = take(&locks, KEY, SECOND).await;
    let theirs = now() + 60_000;
    get_set(&server, theirs).await;
    within(TIME_LIMIT, guard.lost()).await;
    assert!(!guard.is_held());
    drop(guard);
    locks.shutdown().await;
    // It is not ours to delete.
    assert_eq!(value(&server).await, Some(theirs.to_string()));
}

#[tokio::test]
async fn ours_exclude_each_other_whatever_is_written_over_the_time() {
    let (server, locks) = start().await;
    let others = manager(&server, "").await;
    let guard = take(&locks, KEY, LONG).await;
    for command in [&["SET", KEY, "1"][..], &["DEL", KEY]] {
        server.cmd(command).await;
        let refused = try_now(&others).await;
        assert!(matches!(refused, Err(LockError::Contended { .. })));
    }
    assert!(guard.is_held());
}

#[tokio::test]
async fn a_value_in_another_unit_is_an_error_and_not_an_expired_lock() {
    let server = RedisServer::start().await;
    let seconds = (now() / 1000 + 60).to_string();
    let millis = (now() + 60_000).to_string();
    for (settings, value) in [
        ("stamp=ms", &*seconds),
        ("stamp=s", &millis),
        ("stamp=float", &millis),
        ("", "somebody"),
        ("", ""),
    ] {
        server.cmd(&["SET", KEY, value]).await;
        let locks = manager(&server, settings).await;
        for wait in [Duration::ZERO, TIME_LIMIT] {
            let request = locks.lock(KEY).ttl(LONG).wait(wait);
            let error = within(TIME_LIMIT, request.acquire()).await.unwrap_err();
            let text = format!("{error:?}");
            assert!(text.contains("stamp") && text.contains(value), "{text}");
        }
    }
}

#[tokio::test]
async fn what_the_protocol_cannot_do_is_refused() {
    let (_server, locks) = start().await;
    let refused = |error: LockError, name: &str| {
        let text = error.to_string();
        assert!(text.contains(name) && text.contains("setnx"), "{text}");
    };
    let request = || locks.lock(KEY).ttl(LONG);
    refused(request().read().acquire().await.unwrap_err(), "mode");
    refused(request().permits(2).acquire().await.unwrap_err(), "permits");
    let cools_down = request().min_hold(SECOND);
    refused(cools_down.acquire().await.unwrap_err(), "min_hold");
    refused(locks.list("*").await.unwrap_err(), "list");
    refused(locks.overview("*").await.unwrap_err(), "overview");
    for setting in ["replicas=1", "quarantine=10s", "layout=plain", "stamp=us"] {
        let url = format!("redis+setnx://127.0.0.1:1?{setting}");
        let refused = LockManager::connect(format!("{url}&lazy=true")).await;
        assert!(
            matches!(refused, Err(LockError::InvalidOptions { .. })),
            "{setting}"
        );
    }
}

#[tokio::test]
async fn the_documented_rights_are_enough_and_nobody_looks_for_more() {
    let server = RedisServer::start().await;
    let rights = "on >secret resetkeys ~lock:* ~orders resetchannels &lock:grant:* &lock:all -@all +subscribe +publish \
                  +eval +evalsha +get +set +del +hset +hmget +hdel +pexpire +pttl +time";
    let words: Vec<_> = ["ACL", "SETUSER", "locks"]
        .into_iter()
        .chain(rights.split_whitespace())
        .collect();
    server.cmd(&words).await;
    let url = server.url_with_user("locks", "secret");
    let locks = connect(url.replace("redis://", "redis+setnx://")).await;
    server.cmd(&["SET", KEY, &(now() - 1000).to_string()]).await;
    // It is taken over, confirmed, renewed, and released.
    let request = locks.lock(KEY).ttl(SECOND / 2).wait(TIME_LIMIT);
    let guard = within(TIME_LIMIT, request.acquire()).await.unwrap();
    let written = value(&server).await;
    eventually(TIME_LIMIT, async || value(&server).await != written).await;
    assert!(locks.status(KEY).await.unwrap().is_held());
    release(guard).await;
    assert_eq!(locks.force_release(KEY).await.unwrap(), 0);
    let findings = within(TIME_LIMIT, locks.diagnose()).await.unwrap();
    let rights = findings.iter().find(|it| it.check == "rights").unwrap();
    assert_eq!(rights.severity, Severity::Fine, "{rights:?}");
}
