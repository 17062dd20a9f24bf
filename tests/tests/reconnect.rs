//! A connection or a server that goes and comes back costs no lock and no position in a queue.
//!
//! Section: guarantees.md#the-lock-goes-on

use std::time::Duration;

use lock_runtime::{LockConfig, LockError};
use tests::{
    Proxy, Pulse, RedisServer, connect, eventually, granted, leaves_nothing, queue, release, take,
    unique, within, work,
};
use tokio::time::{Instant, sleep, timeout};

/// Longer than a server needs to start.
const TTL: Duration = Duration::from_secs(3);
const SOON: Duration = Duration::from_secs(10);

/// A grant that is lost with its connection is found again in this time; one that nobody looks for lasts for 3 s.
const FOUND: Duration = Duration::from_secs(2);

// Section: guarantees.md#one-holder-at-a-time
#[tokio::test]
async fn a_restart_that_keeps_the_data() {
    let mut server = RedisServer::builder().append_only().start().await;
    let (holder, other) = (connect(server.url()).await, connect(server.url()).await);
    let key = unique("kept");
    let guard = take(&holder, &key, TTL).await;
    let fence = guard.fencing_token();
    let pulse = Pulse::default();
    let body = work(guard, &pulse, TTL + TTL / 2);
    let waiter = queue(&server, &other, &key, TTL, 1).await;

    server.restart().await;
    let outcome = within(3 * TTL, body).await.expect("no panic");
    outcome.expect("renewed in time");
    let guard = granted(FOUND, waiter).await;
    assert!(guard.fencing_token() > fence);
    assert_eq!(pulse.polls().late, 0);
}

// Section: guarantees.md#one-holder-at-a-time, guarantees.md#fencing-tokens-grow
#[tokio::test]
async fn a_restart_that_loses_the_data() {
    let mut server = RedisServer::start().await;
    let (holder, other) = (connect(server.url()).await, connect(server.url()).await);
    let key = unique("lost");
    let guard = take(&holder, &key, TTL).await;
    let fence = guard.fencing_token();
    let pulse = Pulse::default();
    let body = work(guard, &pulse, 2 * TTL);
    let waiter = queue(&server, &other, &key, TTL, 1).await;

    server.restart().await;
    let outcome = within(TTL + SOON, body).await.expect("no panic");
    assert!(matches!(outcome, Err(LockError::Lost { .. })));
    assert_eq!(pulse.polls().late, 0);
    let guard = granted(SOON, waiter).await;
    assert!(guard.fencing_token() > fence, "the fence fell back");
}

// Section: guarantees.md#fencing-tokens-grow
#[tokio::test]
async fn a_counter_that_was_set_back_is_raised_by_the_next_connection() {
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let key = unique("set-back");
    let guard = take(&locks, &key, TTL).await;
    let fence = guard.fencing_token();
    release(guard).await;
    // As an old copy of the data has it: an hour behind the clock.
    let before = fence.get() - 3_600_000_000;
    let set = ["SET", RedisServer::FENCE_KEY, &before.to_string()];
    server.cmd(&set).await;
    let other = connect(server.url()).await;
    let guard = take(&other, &key, TTL).await;
    assert!(guard.fencing_token() > fence, "the fence fell back");
}

#[tokio::test]
async fn every_connection_is_killed_again_and_again() {
    let server = RedisServer::start().await;
    // It may take seconds until a call is answered.
    let config = LockConfig::new(server.url()).expect("a valid URL");
    let config = config.unavailable_wait_forever();
    let other = connect(config.clone()).await;
    let holder = connect(config.pool_size(2)).await;
    let key = unique("killed");
    // Most of it is left when a renewal is due, however few of them arrive beside a busy machine.
    let held = take(&holder, &key, 8 * TTL).await;
    let waiter = queue(&server, &other, &key, TTL, 1).await;
    let end = || Instant::now() + held.remaining();
    let granted_until = end();
    // Until the lease has been renewed twice.
    while end() < granted_until + 4 * TTL {
        server.kill_all_clients().await;
        eventually(SOON, async || server.listeners().await == 3).await;
        // What is sent again with the connection is answered before.
        eventually(SOON, async || holder.status(&*key).await.is_ok()).await;
        assert!(held.is_held(), "not renewed in time");
        // A renewal that is due without a connection is tried again only after a pause.
        sleep(Duration::from_millis(50)).await;
    }
    release(held).await;
    let guard = granted(FOUND, waiter).await;

    // What is released without a connection is released later.
    server.kill_all_clients().await;
    guard.release();
    leaves_nothing(&server, &key, FOUND).await;
}

#[tokio::test]
async fn a_grant_is_lost_with_its_connection() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr());
    let (holder, other) = (connect(server.url()).await, connect(proxy.url()).await);
    let key = unique("grant");
    for round in 0..20 {
        let guard = take(&holder, &key, TTL).await;
        let waiter = queue(&server, &other, &key, TTL, 1).await;
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
        release(granted(FOUND, waiter).await).await;
    }
}

#[tokio::test]
async fn a_connection_that_is_killed_while_its_grant_is_made() {
    let server = RedisServer::start().await;
    let (holder, other) = (connect(server.url()).await, connect(server.url()).await);
    let key = unique("kill");
    for early in [true, false, true, false] {
        let guard = take(&holder, &key, TTL).await;
        let waiter = queue(&server, &other, &key, TTL, 1).await;
        if early {
            server.kill_all_clients().await;
            guard.release();
        } else {
            guard.release();
            server.kill_all_clients().await;
        }
        release(granted(FOUND, waiter).await).await;
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
        let guard = within(FOUND, take(&holder, &key, TTL)).await;
        flush().await;
        let waiter = queue(&server, &other, &key, TTL, 1).await;
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
    let mut body = work(take(&holder, &key, TTL).await, &pulse, TTL + TTL / 2);
    let outcome = loop {
        server.cmd(&["SCRIPT", "FLUSH"]).await;
        if let Ok(outcome) = timeout(TTL / 10, &mut body).await {
            break outcome.expect("no panic");
        }
    };
    outcome.expect("renewed");
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
    let body = work(
        take(&locks, &unique("held"), TTL).await,
        &pulse,
        TTL + TTL / 2,
    );
    refuse("1").await;
    let key = unique("new");
    let acquire = tokio::spawn(locks.lock(&key).ttl(TTL).wait(SOON).acquire());
    // The acquire is tried again and again, and the renewal due.
    let failed = async || {
        // Redis 6.2 counts what fails within a script by another name.
        server.errors("NOREPLICAS").await + server.errors("ERR").await >= 3
    };
    eventually(SOON, failed).await;
    let once = locks.lock(&key).ttl(TTL).wait(Duration::ZERO).acquire();
    let error = within(SOON, once).await.expect_err("the server refuses");
    assert!(matches!(error, LockError::Unavailable { .. }), "{error}");
    sleep(TTL / 3).await;

    refuse("0").await;
    let guard = within(FOUND, acquire).await.expect("no panic");
    assert!(guard.expect("the error is gone").is_held());
    let outcome = within(2 * TTL, body).await.expect("no panic");
    outcome.expect("renewed");
}
