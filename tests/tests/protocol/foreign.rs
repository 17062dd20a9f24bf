//! A client that knows `SET NX PX` and nothing of queues.
//!
//! Section: guarantees.md#one-holder-at-a-time

use std::time::Duration;

use lock_runtime::LockError;
use tests::{RedisServer, connect, granted, leaves_nothing, queue, release, unique, within};
use tokio::time::Instant;

use crate::{FOUND, LONG, SECOND, SOON};

#[tokio::test]
async fn its_key_is_waited_for_until_it_expires() {
    let server = RedisServer::start().await;
    let locks = connect(&server.url()).await;
    let key = unique("foreign");
    let owner = RedisServer::owner_key(&key);
    let take = ["SET", &owner, "somebody", "NX", "PX", "1500"];
    server.cmd(&take).await;
    let taken = Instant::now();
    let tried = locks.lock(&key).wait(Duration::ZERO).acquire().await;
    match tried.expect_err("it is held") {
        LockError::Contended { holder, .. } => {
            let holder = holder.expect("the server named it");
            assert_eq!(&*holder.id, "somebody");
            let left = holder.remaining.expect("it has a ttl");
            assert!(left <= SECOND * 3 / 2, "{left:?}");
        }
        error => panic!("{error}"),
    }
    let waiter = queue(&server, &locks, &key, LONG, 1).await;
    // Not before, and within a second: nobody tells.
    let guard = granted(SECOND * 3 / 2 + SECOND, waiter).await;
    assert!(taken.elapsed() >= SECOND * 7 / 5, "{:?}", taken.elapsed());
    assert!(guard.is_held());
    release(guard).await;
    leaves_nothing(&server, &key, FOUND).await;
}

#[tokio::test]
async fn its_key_without_a_ttl_is_waited_for_until_it_is_deleted() {
    let server = RedisServer::start().await;
    let locks = connect(&server.url()).await;
    let key = unique("foreign");
    let owner = RedisServer::owner_key(&key);
    server.cmd(&["SET", &owner, "somebody", "NX"]).await;
    let tried = locks.lock(&key).wait(SECOND / 2).acquire();
    match within(SOON, tried).await.expect_err("it is held") {
        LockError::Contended { holder, .. } => {
            assert_eq!(holder.expect("the server named it").remaining, None);
        }
        error => panic!("{error}"),
    }
    let waiter = queue(&server, &locks, &key, LONG, 1).await;
    // Some questions later.
    tokio::time::sleep(5 * SECOND / 2).await;
    assert!(!waiter.is_finished());
    assert_eq!(server.owner(&key).await.as_deref(), Some("somebody"));
    let left = server.cmd(&["PTTL", &owner]).await;
    assert_eq!(left, redis::Value::Int(-1), "it was given a ttl");
    server.cmd(&["DEL", &owner]).await;
    let guard = granted(FOUND, waiter).await;
    release(guard).await;
    leaves_nothing(&server, &key, FOUND).await;
}

#[tokio::test]
async fn it_respects_ours() {
    let server = RedisServer::start().await;
    let locks = connect(&server.url()).await;
    let key = unique("ours");
    let owner = RedisServer::owner_key(&key);
    let request = locks.lock(&key).ttl(SECOND);
    let guard = request.acquire().await.expect("the lock is free");
    let end = Instant::now() + 3 * SECOND;
    while Instant::now() < end {
        let take = ["SET", &owner, "somebody", "NX", "PX", "1000"];
        let answer = server.cmd(&take).await;
        assert_eq!(answer, redis::Value::Nil, "it was free for a moment");
    }
    release(guard).await;
    let take = ["SET", &owner, "somebody", "NX", "PX", "1000"];
    assert_eq!(server.cmd(&take).await, redis::Value::Okay);
}
