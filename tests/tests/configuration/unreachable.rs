//! Servers that cannot be reached, at startup and later.
//!
//! Section: guarantees.md#the-body-does-not-begin-without-the-lock

use std::time::Duration;

use lock_runtime::{LockError, LockManager, init};
use tests::{Proxy, RedisServer, eventually, timed, within};
use tokio::net::TcpSocket;

use crate::{TIME_LIMIT, config, connect, unavailable};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test]
async fn a_refused_port_is_unavailable_within_the_connect_timeout() {
    // A port that is taken, and that nobody listens on.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = format!("redis://{}", socket.local_addr().unwrap());
    let config = config(url).connect_timeout(SECOND);
    let (text, took) = unavailable(init(config)).await;
    assert!(text.contains("refused"), "{text}");
    assert!(took < 2 * SECOND, "{took:?}");
}

#[tokio::test]
async fn a_silent_server_is_unavailable_within_the_connect_timeout() {
    let server = RedisServer::start().await;
    server.stop();
    let config = config(server.url()).connect_timeout(SECOND);
    let (text, took) = unavailable(LockManager::connect(config)).await;
    assert!(text.contains("did not answer"), "{text}");
    assert!(took < 2 * SECOND, "{took:?}");
}

#[tokio::test]
async fn a_server_that_comes_up_within_the_connect_timeout_is_used() {
    let server = RedisServer::start().await;
    let mut proxy = Proxy::start(server.addr());
    proxy.refuse().await;
    let config = config(proxy.url()).connect_timeout(TIME_LIMIT);
    let connecting = tokio::spawn(LockManager::connect(config));
    tokio::time::sleep(SECOND / 2).await;
    assert!(!connecting.is_finished());
    proxy.admit();
    let locks = within(TIME_LIMIT, connecting).await.unwrap().unwrap();
    let guard = within(TIME_LIMIT, locks.lock("key").acquire()).await;
    assert!(guard.is_ok());
}

#[tokio::test]
async fn a_lazy_manager_connects_once_the_server_is_up() {
    let server = RedisServer::start().await;
    let mut proxy = Proxy::start(server.addr());
    proxy.refuse().await;
    let lazy = config(format!("{}?lazy=true", proxy.url()));
    let (took, locks) = timed(LockManager::connect(lazy)).await;
    let locks = locks.unwrap();
    assert!(took < SECOND, "{took:?}");
    let (text, _) = unavailable(locks.lock("key").try_once().acquire()).await;
    assert!(!text.contains("no answer"), "{text}");
    let waiting = tokio::spawn(locks.lock("key").wait(TIME_LIMIT).acquire());
    proxy.admit();
    within(TIME_LIMIT, waiting)
        .await
        .unwrap()
        .unwrap()
        .release();
}

#[tokio::test]
async fn a_lazy_manager_tells_what_the_server_refuses_with_the_first_lock() {
    let server = RedisServer::builder().password("secret").start().await;
    let config = config(server.url_with_user("default", "hunter2")).lazy();
    let locks = connect(config).await;
    let (text, took) = unavailable(locks.lock("key").wait(TIME_LIMIT).acquire()).await;
    assert!(text.contains("assword"), "{text}");
    assert!(took < TIME_LIMIT / 4, "{took:?}");
}

#[tokio::test]
async fn a_server_killed_later_makes_calls_unavailable_when_their_wait_ends() {
    let mut server = RedisServer::start().await;
    let locks = connect(config(server.url())).await;
    server.kill().await;
    let try_once = async || locks.lock("key").wait(Duration::ZERO).acquire().await;
    assert!(within(TIME_LIMIT, try_once()).await.is_err());
    // From here on it is known that there is no connection.
    let (_, took) = unavailable(try_once()).await;
    assert!(took < SECOND / 4, "{took:?}");
    for wait in [Duration::ZERO, SECOND] {
        let request = locks.lock("key").wait(wait);
        let body = async |_: &_| panic!("ran without the lock");
        let (text, took) = unavailable(request.run::<()>(body)).await;
        assert!(
            took >= wait && took < wait + SECOND,
            "{took:?} for {wait:?}"
        );
        assert!(text.contains(" is unavailable: "), "{text}");
    }
}

#[tokio::test]
async fn a_wait_for_a_dead_server_ends_before_a_wait_for_a_lock() {
    let mut server = RedisServer::start().await;
    let settings = config(server.url()).wait_forever();
    let default = connect(settings.clone()).await;
    let patient = connect(settings.clone().unavailable_wait_forever()).await;
    let url = format!("{}?unavailable_wait=0s&wait=forever", server.url());
    let hasty = connect(config(url)).await;
    let holder = connect(settings.clone()).await;
    let held = holder.lock("held").ttl(TIME_LIMIT).acquire().await.unwrap();
    // One waits already, the others come later.
    let queued = tokio::spawn(timed(default.lock("held").acquire()));
    eventually(TIME_LIMIT, async || {
        holder.status("held").await.unwrap().waiting == 1
    })
    .await;
    let waits_on = tokio::spawn(patient.lock("key").acquire());
    within(TIME_LIMIT, waits_on)
        .await
        .unwrap()
        .unwrap()
        .release();
    server.kill().await;
    let waits_on = tokio::spawn(patient.lock("key").acquire());
    eventually(TIME_LIMIT, async || {
        let (text, took) = unavailable(hasty.lock("key").acquire()).await;
        text.contains("refused") && took < SECOND / 4
    })
    .await;
    let (_, took) = unavailable(default.lock("key").acquire()).await;
    assert!(took >= 2 * SECOND && took < 4 * SECOND, "{took:?}");
    let (_, ended) = within(TIME_LIMIT, queued).await.unwrap();
    assert!(matches!(ended, Err(LockError::Unavailable { .. })));
    assert!(!waits_on.is_finished());
    drop(held);
    server.restart().await;
    let guard = within(TIME_LIMIT, waits_on).await.unwrap();
    assert!(guard.unwrap().is_held());
}

#[tokio::test]
async fn trouble_that_passes_counts_from_anew() {
    let server = RedisServer::start().await;
    let mut proxy = Proxy::start(server.addr());
    let holder = connect(config(server.url())).await;
    let held = holder.lock("key").acquire().await.unwrap();
    let limited = config(proxy.url()).wait_forever();
    let locks = connect(limited.unavailable_wait(2 * SECOND)).await;
    let waiting = tokio::spawn(locks.lock("key").acquire());
    // Together they are longer than that.
    for _ in 0..5 {
        proxy.refuse().await;
        proxy.cut().await;
        tokio::time::sleep(SECOND / 2).await;
        proxy.admit();
        eventually(TIME_LIMIT, async || locks.health().await.connected).await;
    }
    assert!(!waiting.is_finished());
    drop(held);
    within(TIME_LIMIT, waiting)
        .await
        .unwrap()
        .unwrap()
        .release();
}

#[tokio::test]
async fn a_server_stopped_later_makes_calls_unavailable_when_their_wait_ends() {
    let server = RedisServer::start().await;
    let locks = connect(config(server.url())).await;
    server.stop();
    for wait in [Duration::ZERO, SECOND] {
        let request = locks.lock("key").wait(wait);
        let body = async |_: &_| panic!("ran without the lock");
        let (_, took) = unavailable(request.run::<()>(body)).await;
        // A server that is slow may still answer a try.
        assert!(
            took >= wait && took < wait + 2 * SECOND,
            "{took:?} for {wait:?}"
        );
    }
    server.resume();
    let request = locks.lock("key").wait(TIME_LIMIT);
    let guard = within(TIME_LIMIT, request.acquire()).await.unwrap();
    assert!(within(TIME_LIMIT, guard.release_confirmed()).await.unwrap());
    // What was given up meanwhile is not taken after all.
    eventually(TIME_LIMIT, async || server.keys("lock:{*").await.is_empty()).await;
}
