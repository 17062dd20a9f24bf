//! Servers that cannot be reached, at startup and later.

use std::time::Duration;

use lock_runtime::{LockManager, init};
use tests::{Proxy, RedisServer, eventually, within};
use tokio::net::TcpSocket;

use crate::{PATIENCE, config, connect, unavailable};

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
    let config = config(proxy.url()).connect_timeout(PATIENCE);
    let connecting = tokio::spawn(LockManager::connect(config));
    tokio::time::sleep(SECOND / 2).await;
    assert!(!connecting.is_finished());
    proxy.admit();
    let locks = within(PATIENCE, connecting).await.unwrap().unwrap();
    let guard = within(PATIENCE, locks.lock("key").acquire()).await;
    assert!(guard.is_ok());
}

#[tokio::test]
async fn a_server_killed_later_makes_calls_unavailable_when_their_wait_ends() {
    let mut server = RedisServer::start().await;
    let locks = connect(config(server.url())).await;
    server.kill().await;
    let try_once = async || locks.lock("key").wait(Duration::ZERO).acquire().await;
    assert!(within(PATIENCE, try_once()).await.is_err());
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
    let request = locks.lock("key").wait(PATIENCE);
    let guard = within(PATIENCE, request.acquire()).await.unwrap();
    assert!(within(PATIENCE, guard.release_confirmed()).await.unwrap());
    // What was given up meanwhile is not taken after all.
    eventually(PATIENCE, async || server.keys("lock:{*").await.is_empty()).await;
}
