//! Processes that are stopped or killed while many of their acquisitions wait.
//!
//! Section: guarantees.md#first-come-first-served

use std::time::{Duration, Instant};

use redis::{Value, from_redis_value};
use tests::{RedisServer, Worker, connect, eventually, leaves_nothing, take, within};

use crate::{LONG, SECOND, SOON};

/// A grant that nobody claims lasts so long.
const GRANT: Duration = Duration::from_secs(3);

async fn process(server: &RedisServer) -> Worker {
    Worker::locker(env!("CARGO_BIN_EXE_worker"), &server.url()).await
}

#[tokio::test]
async fn a_stopped_process_with_fifty_waiters_costs_one_grant() {
    const WAITERS: u64 = 50;
    let server = RedisServer::start().await;
    let (mut stopped, mut living) = (process(&server).await, process(&server).await);
    let locks = connect(&server.url()).await;
    let holder = take(&locks, "key", LONG).await;
    // A chain of them would cost one grant too.
    stopped.send(&format!("crowd {WAITERS} key apart")).await;
    server.queued("key", WAITERS).await;
    living.send("pass last key").await;
    server.queued("key", WAITERS + 1).await;
    stopped.pause();
    let released = Instant::now();
    holder.release();
    let last = within(SOON, living.fence()).await;
    let took = released.elapsed();
    assert!(took < GRANT + SECOND, "{took:?}");
    assert!(took > GRANT / 2, "{took:?}: nobody was in the way");
    // They have lost their turn and not their wait.
    stopped.resume();
    for _ in 0..WAITERS {
        assert!(within(SOON, stopped.fence()).await > last);
    }
    leaves_nothing(&server, "key", SOON).await;
}

/// The longest of the scripts since `SLOWLOG RESET` that took more than 10 ms.
async fn slowest_script(server: &RedisServer) -> Duration {
    let log = server.cmd(&["SLOWLOG", "GET", "-1"]).await;
    let entries: Vec<Vec<Value>> = from_redis_value(log).expect("entries");
    let scripts = entries.into_iter().filter_map(|entry| {
        let words: Vec<String> = from_redis_value(entry[3].clone()).expect("words");
        let micros: u64 = from_redis_value(entry[2].clone()).expect("a number");
        words[0]
            .eq_ignore_ascii_case("evalsha")
            .then(|| Duration::from_micros(micros))
    });
    scripts.max().unwrap_or_default()
}

#[tokio::test]
async fn a_killed_process_with_ten_thousand_waiters_is_cleared_away() {
    const WAITERS: u64 = 10_000;
    let server = RedisServer::start().await;
    let (mut killed, mut living) = (process(&server).await, process(&server).await);
    let locks = connect(&server.url()).await;
    let holder = take(&locks, "key", LONG).await;
    killed.send(&format!("crowd {WAITERS} key")).await;
    server.queued("key", WAITERS).await;
    living.send("pass last key").await;
    server.queued("key", WAITERS + 1).await;
    killed.kill().await;
    eventually(SOON, async || server.listeners().await == 2).await;
    server.cmd(&["SLOWLOG", "RESET"]).await;
    let released = Instant::now();
    holder.release();
    within(SOON, living.fence()).await;
    let took = released.elapsed();
    assert!(took < GRANT + SECOND, "{took:?}");
    leaves_nothing(&server, "key", SOON).await;
    let slowest = slowest_script(&server).await;
    println!("served after {took:?}, the slowest script took {slowest:?}");
    assert!(slowest < SECOND / 5, "others waited {slowest:?} for us");
}
