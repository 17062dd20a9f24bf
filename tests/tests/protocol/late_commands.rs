//! Commands of an old connection that the server carries out when all of it is long over.

use std::time::{Duration, Instant};

use redis::Value;
use tests::{RedisServer, connect, granted, leaves_nothing, queue, release, take, unique};

use crate::{FOUND, LONG, SECOND, SOON};

/// All calls about `key` that a manager ever sends: take, renew, release, wait, ask, leave, claim.
async fn everything(server: &RedisServer, url: &str, key: &str) -> Vec<Vec<String>> {
    let (ours, theirs) = (connect(url).await, connect(&server.url()).await);
    let mut monitor = server.monitor().await;
    let guard = take(&ours, key, SECOND / 2).await;
    tokio::time::sleep(SECOND).await;
    assert!(guard.is_held(), "renewed");
    release(guard).await;
    let mut calls = monitor.commands(server).await;

    let holder = take(&theirs, key, LONG).await;
    monitor.commands(server).await;
    let request = ours.lock(key).ttl(LONG).wait(5 * SECOND / 4);
    assert!(request.acquire().await.is_err(), "the lock is held");
    let waiter = queue(server, &ours, key, LONG, 1).await;
    calls.extend(monitor.commands(server).await);
    holder.release();
    let guard = granted(FOUND, waiter).await;
    monitor.commands(server).await;
    release(guard).await;
    calls.extend(monitor.commands(server).await);
    let owner = RedisServer::owner_key(key);
    calls.retain(|words| words[0] == "evalsha" && words[3] == owner);
    assert!(calls.len() >= 8, "only {calls:?}");
    calls
}

async fn again(server: &RedisServer, call: &[String]) {
    let words: Vec<&str> = call.iter().map(String::as_str).collect();
    server.cmd(&words).await;
}

// Section: guarantees.md#one-holder-at-a-time
#[tokio::test]
async fn they_take_nothing_from_a_later_holder() {
    let server = RedisServer::start().await;
    let key = unique("late");
    let calls = everything(&server, &server.url(), &key).await;
    // The one who sent all that is gone.
    let (holder, others) = (connect(&server.url()).await, connect(&server.url()).await);
    let guard = take(&holder, &key, LONG).await;
    let token = server.owner(&key).await;
    let waiter = queue(&server, &others, &key, LONG, 1).await;
    for call in calls.iter().chain(calls.iter().rev()) {
        again(&server, call).await;
        assert_eq!(server.owner(&key).await, token, "{call:?}");
    }
    assert!(guard.is_held());
    let fence = guard.fencing_token();
    guard.release();
    // An acquisition that joined the queue late has no listener.
    let next = granted(FOUND, waiter).await;
    assert!(next.fencing_token() > fence);
    release(next).await;
    leaves_nothing(&server, &key, FOUND).await;
}

// Section: guarantees.md#the-lock-goes-on
#[tokio::test]
async fn a_late_acquire_costs_one_ttl_at_the_most() {
    const TTL: Duration = Duration::from_secs(2);
    let server = RedisServer::start().await;
    let (ours, theirs) = (connect(&server.url()).await, connect(&server.url()).await);
    let key = unique("late");
    let mut monitor = server.monitor().await;
    release(take(&ours, &key, TTL).await).await;
    let calls = monitor.commands(&server).await;
    let acquire = calls.iter().find(|words| words[0] == "evalsha");
    let acquire = acquire.expect("it was taken");

    // Nobody knows of the lease that it makes.
    again(&server, acquire).await;
    assert!(server.owner(&key).await.is_some());
    let start = Instant::now();
    release(take(&theirs, &key, TTL).await).await;
    assert!(start.elapsed() < 2 * TTL, "{:?}", start.elapsed());

    // Where it has to wait, whoever sent it gives its grant back at once.
    let holder = take(&theirs, &key, LONG).await;
    again(&server, acquire).await;
    let waiter = queue(&server, &theirs, &key, LONG, 2).await;
    let start = Instant::now();
    holder.release();
    let guard = granted(SOON, waiter).await;
    assert!(start.elapsed() < TTL, "{:?}", start.elapsed());
    release(guard).await;
    leaves_nothing(&server, &key, FOUND).await;
    assert_ne!(
        server.cmd(&["GET", RedisServer::FENCE_KEY]).await,
        Value::Nil
    );
}
