//! What servers count, what refusing costs them, and waiters that are gone.
//!
//! Section: guarantees.md#a-queue-of-limited-length

use std::time::Duration;

use lock_runtime::LockManager;
use tests::{
    Home, LONG, PostgresHome, RedisServer, TIME_LIMIT, Worker, connect, eventually, poll_once,
    release, take, waits, within,
};

use crate::{refused, request};

/// No other call has it.
const ODD: Duration = Duration::from_millis(61_234);

#[tokio::test]
async fn a_refusal_costs_one_call() {
    const REFUSALS: usize = 10;
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let guard = take(&locks, "key", LONG).await;
    let mut waiter = request(&locks, 1).acquire();
    assert!(poll_once(&mut waiter).await.is_pending());
    server.queued("key", 1).await;
    // The script is known, and the connection asks for nothing any more.
    refused(request(&locks, 1)).await;
    let mut monitor = server.monitor().await;
    for _ in 0..REFUSALS {
        refused(request(&locks, 1).ttl(ODD)).await;
    }
    let ttl = ODD.as_millis().to_string();
    let commands = monitor.commands(&server).await;
    let about = |command: &&Vec<String>| command.iter().any(|word| word.contains(&ttl));
    let calls: Vec<_> = commands.iter().filter(about).collect();
    assert_eq!(calls.len(), REFUSALS, "{calls:#?}");
    release(guard).await;
    release(within(TIME_LIMIT, waiter).await.unwrap()).await;
}

#[tokio::test]
async fn a_waiter_that_has_lost_its_place_is_not_refused() {
    let server = RedisServer::start().await;
    let (locks, others) = (connect(server.url()).await, connect(server.url()).await);
    let guard = take(&locks, "key", LONG).await;
    let mut first = request(&locks, 1).acquire();
    assert!(poll_once(&mut first).await.is_pending());
    server.queued("key", 1).await;
    let mut second = others.lock("key").ttl(LONG).wait_forever().acquire();
    assert!(poll_once(&mut second).await.is_pending());
    server.queued("key", 2).await;
    // As a failover does that forgets the first one.
    server
        .cmd(&["ZPOPMIN", &RedisServer::queue_key("key")])
        .await;
    server.queued("key", 2).await;
    release(guard).await;
    release(within(TIME_LIMIT, first).await.unwrap()).await;
    release(within(TIME_LIMIT, second).await.unwrap()).await;
}

#[tokio::test]
async fn on_redis_the_killed_do_not_count() {
    let server = RedisServer::start().await;
    the_killed_do_not_count(&server.url()).await;
}

#[tokio::test]
async fn on_postgres_the_killed_do_not_count() {
    if let Some(home) = PostgresHome::start().await {
        the_killed_do_not_count(&home.url()).await;
    }
}

/// The waiters of a process that was killed count for a while at the most, although nobody is served meanwhile.
async fn the_killed_do_not_count(url: &str) {
    let locks = connect(url).await;
    let mut worker = Worker::locker(env!("CARGO_BIN_EXE_worker"), url).await;
    let guard = take(&locks, "key", LONG).await;
    let mut waiter = locks.lock("key").ttl(LONG).wait_forever().acquire();
    assert!(poll_once(&mut waiter).await.is_pending());
    worker.send("crowd 2 key").await;
    waits(&locks, "key", 3).await;
    refused(request(&locks, 3)).await;
    worker.kill().await;
    eventually(TIME_LIMIT, async || joins_for_a_while(&locks).await).await;
    release(guard).await;
    release(within(TIME_LIMIT, waiter).await.unwrap()).await;
}

/// Whether one more may wait where at most two do.
async fn joins_for_a_while(locks: &LockManager) -> bool {
    let request = request(locks, 2).wait(Duration::from_millis(100));
    let error = request.acquire().await.expect_err("the lock is held");
    !error.to_string().contains("max_waiters")
}
