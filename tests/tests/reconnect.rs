//! A connection or a server that goes and comes back costs no lock and no place in line.

use std::time::Duration;

use lock_runtime::{LockConfig, LockError, LockGuard, LockManager};
use tests::{Proxy, Pulse, RedisServer, eventually, unique, within};
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};

/// Longer than a server needs to start.
const TTL: Duration = Duration::from_secs(3);
const SOON: Duration = Duration::from_secs(10);

/// A grant that is lost with its connection is found again in this time; one that nobody looks for lasts for 3 s.
const FOUND: Duration = Duration::from_secs(2);

async fn connect(url: String) -> LockManager {
    LockManager::connect(url).await.expect("connected")
}

async fn take(locks: &LockManager, key: &str) -> LockGuard {
    let acquire = locks.lock(key).ttl(TTL).acquire();
    acquire.await.expect("the lock is free")
}

/// Waits in the line of `key`, at last for its head.
async fn queue(server: &RedisServer, locks: &LockManager, key: &str) -> JoinHandle<LockGuard> {
    let acquire = locks.lock(key).ttl(TTL).wait_forever().acquire();
    let waiter = tokio::spawn(async move { acquire.await.expect("an answer at last") });
    eventually(SOON, async || server.waiting(key).await == 1).await;
    waiter
}

/// Runs a body under the lock for so long, and releases it.
fn work(guard: LockGuard, pulse: &Pulse, time: Duration) -> JoinHandle<Result<bool, LockError>> {
    let pulse = pulse.clone();
    tokio::spawn(async move {
        let body = timeout(time, pulse.beat(&guard));
        guard.hold(body).await.map(|outcome| outcome.is_err())
    })
}

async fn granted(limit: Duration, waiter: JoinHandle<LockGuard>) -> LockGuard {
    let guard = within(limit, waiter).await.expect("the waiter goes on");
    assert!(guard.is_held());
    guard
}

#[tokio::test]
async fn a_restart_that_keeps_the_data() {
    let mut server = RedisServer::builder().append_only().start().await;
    let (holder, other) = (connect(server.url()).await, connect(server.url()).await);
    let key = unique("kept");
    let guard = take(&holder, &key).await;
    let fence = guard.fencing_token();
    let pulse = Pulse::default();
    let body = work(guard, &pulse, TTL + TTL / 2);
    let waiter = queue(&server, &other, &key).await;

    server.restart().await;
    let outcome = within(3 * TTL, body).await.expect("no panic");
    assert!(
        outcome.expect("renewed in time"),
        "the body ended by itself"
    );
    let guard = granted(FOUND, waiter).await;
    assert!(guard.fencing_token() > fence);
    assert_eq!(pulse.polls().late, 0);
}

#[tokio::test]
async fn a_restart_that_loses_the_data() {
    let mut server = RedisServer::start().await;
    let (holder, other) = (connect(server.url()).await, connect(server.url()).await);
    let key = unique("lost");
    let guard = take(&holder, &key).await;
    let fence = guard.fencing_token();
    let pulse = Pulse::default();
    let body = work(guard, &pulse, 2 * TTL);
    let waiter = queue(&server, &other, &key).await;

    server.restart().await;
    let outcome = within(TTL + SOON, body).await.expect("no panic");
    assert!(matches!(outcome, Err(LockError::Lost { .. })));
    assert_eq!(pulse.polls().late, 0);
    let guard = granted(SOON, waiter).await;
    assert!(guard.fencing_token() > fence, "the fence fell back");
}

#[tokio::test]
async fn every_connection_is_killed_again_and_again() {
    let server = RedisServer::start().await;
    let config = LockConfig::new(server.url()).and_then(|config| config.pool_size(2));
    let holder = LockManager::connect(config.expect("valid")).await;
    let holder = holder.expect("connected");
    let other = connect(server.url()).await;
    let key = unique("killed");
    let pulse = Pulse::default();
    let body = work(take(&holder, &key).await, &pulse, TTL + TTL / 2);
    let waiter = queue(&server, &other, &key).await;
    let end = Instant::now() + TTL;
    while Instant::now() < end {
        server.kill_all_clients().await;
        eventually(SOON, async || server.listeners().await == 3).await;
    }
    let outcome = within(2 * TTL, body).await.expect("no panic");
    assert!(
        outcome.expect("renewed in time"),
        "the body ended by itself"
    );
    let guard = granted(FOUND, waiter).await;

    // What is released without a connection is released later.
    server.kill_all_clients().await;
    guard.release();
    let free = async || server.traces(&key).await.is_empty();
    eventually(FOUND, free).await;
}

#[tokio::test]
async fn a_grant_is_lost_with_its_connection() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr());
    let (holder, other) = (connect(server.url()).await, connect(proxy.url()).await);
    let key = unique("grant");
    for round in 0..20 {
        let guard = take(&holder, &key).await;
        let waiter = queue(&server, &other, &key).await;
        match round % 4 {
            // It is on the wire.
            0 => {
                proxy.replies().hold();
                guard.release();
                within(SOON, proxy.replies().held()).await;
                proxy.cut().await;
                proxy.replies().pass();
            }
            // Nobody listens.
            1 => {
                proxy.cut().await;
                guard.release();
            }
            // One of the two comes first.
            _ => {
                let cut = proxy.cut();
                guard.release();
                sleep(Duration::from_millis(round / 4)).await;
                cut.await;
            }
        }
        granted(FOUND, waiter)
            .await
            .release_confirmed()
            .await
            .expect("released");
    }
}

#[tokio::test]
async fn a_connection_that_is_killed_while_its_grant_is_made() {
    let server = RedisServer::start().await;
    let (holder, other) = (connect(server.url()).await, connect(server.url()).await);
    let key = unique("kill");
    for early in [true, false, true, false] {
        let guard = take(&holder, &key).await;
        let waiter = queue(&server, &other, &key).await;
        if early {
            server.kill_all_clients().await;
            guard.release();
        } else {
            guard.release();
            server.kill_all_clients().await;
        }
        granted(FOUND, waiter)
            .await
            .release_confirmed()
            .await
            .expect("released");
    }
}

#[tokio::test]
async fn the_server_forgets_the_scripts() {
    let server = RedisServer::start().await;
    let (holder, other) = (connect(server.url()).await, connect(server.url()).await);
    let key = unique("script");
    for _ in 0..10 {
        let flush = async || server.cmd(&["SCRIPT", "FLUSH"]).await;
        flush().await;
        let guard = within(FOUND, take(&holder, &key)).await;
        flush().await;
        let waiter = queue(&server, &other, &key).await;
        flush().await;
        guard.release();
        let guard = granted(FOUND, waiter).await;
        flush().await;
        let released = within(FOUND, guard.release_confirmed()).await;
        assert!(released.expect("an answer"));
    }
    let errors = server.errors("NOSCRIPT").await;
    assert!(errors >= 20, "only {errors} calls found their script gone");

    let pulse = Pulse::default();
    let mut body = work(take(&holder, &key).await, &pulse, TTL + TTL / 2);
    let outcome = loop {
        server.cmd(&["SCRIPT", "FLUSH"]).await;
        if let Ok(outcome) = timeout(TTL / 10, &mut body).await {
            break outcome.expect("no panic");
        }
    };
    assert!(outcome.expect("renewed"), "the body ended by itself");
}

#[tokio::test]
async fn an_error_that_passes() {
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let refuse = async |replicas| {
        let set = ["CONFIG", "SET", "min-replicas-to-write", replicas];
        server.cmd(&set).await;
    };
    let pulse = Pulse::default();
    let body = work(take(&locks, &unique("held")).await, &pulse, TTL + TTL / 2);
    refuse("1").await;
    let key = unique("new");
    let acquire = tokio::spawn(locks.lock(&key).ttl(TTL).wait(SOON).acquire());
    // The acquire is tried again and again, and the renewal due.
    let failed = async || server.errors("NOREPLICAS").await >= 3;
    eventually(SOON, failed).await;
    let once = locks.lock(&key).ttl(TTL).wait(Duration::ZERO).acquire();
    let error = within(SOON, once).await.expect_err("the server refuses");
    assert!(matches!(error, LockError::Unavailable { .. }), "{error}");
    sleep(TTL / 3).await;

    refuse("0").await;
    let guard = within(FOUND, acquire).await.expect("no panic");
    assert!(guard.expect("the error is gone").is_held());
    let outcome = within(2 * TTL, body).await.expect("no panic");
    assert!(outcome.expect("renewed"), "the body ended by itself");
}
