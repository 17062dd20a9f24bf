//! Processes that are stopped or killed with many waiters in line.

use std::time::{Duration, Instant};

use redis::{Value, from_redis_value};
use tests::{RedisServer, Worker, eventually, within};

use crate::{LONG, SECOND, SOON, connect, take};

/// A grant that nobody claims lasts so long.
const GRANT: Duration = Duration::from_secs(3);

async fn process(server: &RedisServer) -> Worker {
    let url = server.url();
    let mut worker = Worker::spawn(env!("CARGO_BIN_EXE_worker"), ["locker", &url]).await;
    assert_eq!(worker.line().await, "connected");
    worker
}

async fn in_line(server: &RedisServer, waiters: u64) {
    eventually(SOON, async || server.waiting("key").await == waiters).await;
}

/// Waits for the worker's next grant; when it came, and its fence.
async fn grant(worker: &mut Worker) -> (Instant, u64) {
    let line = worker.line().await;
    let (_, fence) = line.split_once(" granted ").expect("a grant");
    (Instant::now(), fence.parse().expect("a number"))
}

#[tokio::test]
async fn a_stopped_process_with_fifty_waiters_costs_one_grant() {
    const WAITERS: u64 = 50;
    let server = RedisServer::start().await;
    let (mut stopped, mut living) = (process(&server).await, process(&server).await);
    let locks = connect(&server.url()).await;
    let holder = take(&locks, "key", LONG).await;
    stopped.send(&format!("crowd {WAITERS} key")).await;
    in_line(&server, WAITERS).await;
    living.send("pass last key").await;
    in_line(&server, WAITERS + 1).await;
    stopped.pause();
    let released = Instant::now();
    holder.release();
    let (at, last) = within(SOON, grant(&mut living)).await;
    let took = at - released;
    assert!(took < GRANT + SECOND, "{took:?}");
    assert!(took > GRANT / 2, "{took:?}: nobody was in the way");
    // They have lost their turn and not their wait.
    stopped.resume();
    for _ in 0..WAITERS {
        let (_, fence) = within(SOON, grant(&mut stopped)).await;
        assert!(fence > last);
    }
    eventually(SOON, async || server.traces("key").await.is_empty()).await;
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
    in_line(&server, WAITERS).await;
    living.send("pass last key").await;
    in_line(&server, WAITERS + 1).await;
    killed.kill().await;
    eventually(SOON, async || server.listeners().await == 2).await;
    server.cmd(&["SLOWLOG", "RESET"]).await;
    let released = Instant::now();
    holder.release();
    let (at, _) = within(SOON, grant(&mut living)).await;
    let took = at - released;
    assert!(took < GRANT + SECOND, "{took:?}");
    eventually(SOON, async || server.traces("key").await.is_empty()).await;
    let slowest = slowest_script(&server).await;
    println!("served after {took:?}, the slowest script took {slowest:?}");
    assert!(slowest < SECOND / 5, "others waited {slowest:?} for us");
}
