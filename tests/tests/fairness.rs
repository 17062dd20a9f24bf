//! Promise: first come, first served, over all processes; a waiter that gives up or fails does not hold up the rest.
//!
//! Section: guarantees.md#first-come-first-served
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use std::time::Duration;

use lock_runtime::{LockError, LockGuard};
use tests::{Proxy, RedisServer, TIME_LIMIT, Worker, connect, eventually, take, within};

/// No lease ends by itself while a test runs.
const LEASE: Duration = Duration::from_secs(60);

/// Shorter than any grant that nobody takes.
const SOON: Duration = Duration::from_secs(2);

/// Those who come within a millisecond may be served in any order.
const APART: Duration = Duration::from_millis(2);

const KEY: &str = "key";

async fn process(url: &str) -> Worker {
    Worker::locker(env!("CARGO_BIN_EXE_worker"), url).await
}

/// Holds the lock on a manager of its own.
async fn hold(server: &RedisServer) -> LockGuard {
    take(&connect(server.url()).await, KEY, LEASE).await
}

/// Lets `first` wait so many times, and then `second` once.
async fn wait_in_order(server: &RedisServer, first: &mut Worker, times: u64, second: &mut Worker) {
    for position in 1..=times {
        first.send(&format!("pass {position} {KEY}")).await;
        server.queued(KEY, position).await;
    }
    second.send(&format!("pass b {KEY}")).await;
    server.queued(KEY, times + 1).await;
}

#[tokio::test]
async fn three_processes_are_served_in_the_order_in_which_they_came() {
    const ROUNDS: u64 = 8;
    let server = RedisServer::start().await;
    let mut workers = [
        process(&server.url()).await,
        process(&server.url()).await,
        process(&server.url()).await,
    ];
    let guard = hold(&server).await;
    let mut position = 0;
    for round in 0..ROUNDS {
        for worker in &mut workers {
            worker.send(&format!("pass {round} key")).await;
            position += 1;
            server.queued(KEY, position).await;
            tokio::time::sleep(APART).await;
        }
    }
    guard.release();
    let mut last = 0;
    for round in 0..ROUNDS {
        for worker in &mut workers {
            let text = worker.line().await;
            let fence = text.strip_prefix(&format!("{round} granted "));
            let fence: u64 = fence.unwrap_or_else(|| panic!("{text}")).parse().unwrap();
            assert!(fence > last, "{text}, after {last}");
            last = fence;
        }
    }
}

#[tokio::test]
async fn a_lock_that_became_free_by_itself_goes_to_the_first_waiter() {
    let server = RedisServer::start().await;
    let mut first = process(&server.url()).await;
    let _guard = hold(&server).await;
    first.send("acquire a key 60000").await;
    server.queued(KEY, 1).await;
    let locks = connect(server.url()).await;
    // As when its lease has ended: nobody is notified.
    server.cmd(&["DEL", &RedisServer::owner_key(KEY)]).await;
    let newcomer = locks.lock(KEY).wait(Duration::ZERO).acquire();
    let error = within(TIME_LIMIT, newcomer).await.unwrap_err();
    assert!(matches!(error, LockError::Contended { .. }), "{error}");
    within(SOON, first.fence()).await;
}

#[tokio::test]
async fn nobody_starves_under_load() {
    const TASKS: &str = "4";
    const TURNS: u64 = 100;
    let server = RedisServer::start().await;
    let mut workers = Vec::new();
    for _ in 0..3 {
        let args = ["turns", &server.url(), "key", TASKS];
        let mut worker = Worker::spawn(env!("CARGO_BIN_EXE_worker"), args).await;
        assert_eq!(worker.line().await, "ready");
        workers.push(worker);
    }
    for worker in &mut workers {
        worker.send("go").await;
        assert_eq!(worker.line().await, "running");
    }
    // All are in the queue but the holder, and those that have just released.
    eventually(TIME_LIMIT, async || server.waiting(KEY).await >= 6).await;
    let locks = connect(server.url()).await;
    for _ in 0..TURNS {
        let request = locks.lock(KEY).wait(TIME_LIMIT);
        request.acquire().await.unwrap().release();
    }
    for worker in &mut workers {
        worker.send("stop").await;
    }
    for worker in &mut workers {
        let counts = worker.line().await;
        for turns in counts.split(' ').map(|it| it.parse::<u64>().unwrap()) {
            assert!(
                turns >= TURNS / 2,
                "one had {turns} turns, another one {TURNS}"
            );
        }
    }
}

#[tokio::test]
async fn a_waiter_that_gives_up_does_not_hold_up_the_rest() {
    let server = RedisServer::start().await;
    let (mut first, mut second) = (process(&server.url()).await, process(&server.url()).await);
    let guard = hold(&server).await;
    first.send("acquire a key 500").await;
    server.queued(KEY, 1).await;
    second.send("pass b key").await;
    server.queued(KEY, 2).await;
    let refused = first.line().await;
    assert!(refused.contains("is held by"), "{refused}");
    server.queued(KEY, 1).await;
    guard.release();
    within(SOON, second.fence()).await;
}

#[tokio::test]
async fn a_waiter_that_is_dropped_does_not_hold_up_the_rest() {
    let server = RedisServer::start().await;
    let (mut first, mut second) = (process(&server.url()).await, process(&server.url()).await);
    let guard = hold(&server).await;
    first.send("acquire a key 60000").await;
    server.queued(KEY, 1).await;
    second.send("pass b key").await;
    server.queued(KEY, 2).await;
    first.send("drop a").await;
    assert_eq!(first.line().await, "a dropped");
    server.queued(KEY, 1).await;
    guard.release();
    within(SOON, second.fence()).await;
}

#[tokio::test]
async fn a_waiter_that_is_killed_does_not_hold_up_the_rest() {
    let server = RedisServer::start().await;
    let (mut first, mut second) = (process(&server.url()).await, process(&server.url()).await);
    let guard = hold(&server).await;
    wait_in_order(&server, &mut first, 3, &mut second).await;
    first.kill().await;
    eventually(TIME_LIMIT, async || server.listeners().await == 2).await;
    guard.release();
    within(SOON, second.fence()).await;
}

#[tokio::test]
async fn a_waiter_that_is_disconnected_does_not_hold_up_the_rest() {
    let server = RedisServer::start().await;
    let mut proxy = Proxy::start(server.addr());
    let (mut first, mut second) = (process(&proxy.url()).await, process(&server.url()).await);
    let guard = hold(&server).await;
    wait_in_order(&server, &mut first, 3, &mut second).await;
    proxy.refuse().await;
    proxy.cut().await;
    eventually(TIME_LIMIT, async || server.listeners().await == 2).await;
    guard.release();
    let second = within(SOON, second.fence()).await;
    // Those who were skipped have not given up.
    proxy.admit();
    for _ in 0..3 {
        assert!(first.fence().await > second);
    }
}

#[tokio::test]
async fn a_waiter_that_comes_back_in_time_keeps_its_position() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr());
    let (mut first, mut second) = (process(&proxy.url()).await, process(&server.url()).await);
    let guard = hold(&server).await;
    wait_in_order(&server, &mut first, 1, &mut second).await;
    let before = server.subscribers().await;
    proxy.cut().await;
    let back = async || {
        let now = server.subscribers().await;
        now.len() == before.len() && now != before
    };
    eventually(TIME_LIMIT, back).await;
    guard.release();
    let (first, second) = (first.fence().await, second.fence().await);
    assert!(first < second, "served second, at {first} after {second}");
}

#[tokio::test]
async fn waiters_of_a_paused_process_cost_one_grant_and_not_one_each() {
    let server = RedisServer::start().await;
    let (mut first, mut second) = (process(&server.url()).await, process(&server.url()).await);
    let guard = hold(&server).await;
    // Each with a ttl of its own: a chain would cost one grant too.
    for position in 1..=5 {
        let ttl = 60_000 + position;
        first.send(&format!("pass {position} {KEY} {ttl}")).await;
        server.queued(KEY, position).await;
    }
    second.send(&format!("pass b {KEY}")).await;
    server.queued(KEY, 6).await;
    first.pause();
    guard.release();
    // The grant lasts 3 s, and five would 15 s.
    let second = within(Duration::from_secs(10), second.fence()).await;
    first.resume();
    for _ in 0..5 {
        assert!(first.fence().await > second);
    }
}
