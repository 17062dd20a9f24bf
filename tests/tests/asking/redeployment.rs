//! Processes that serve requests are replaced one after the other: none of their bodies is stopped, and no request is
//! refused.
//!
//! `LOCK_PROCESSES` is the number of processes.
//!
//! Section: guarantees.md#asking-to-yield

use std::env;

use lock_runtime::LockManager;
use tests::{Monitor, RedisServer, TIME_LIMIT, Worker, connect, eventually, within};

/// The locks that each process has until it is replaced.
const SHARDS: usize = 3;
/// How many calls about a lock there are from the end of a body to the begin of the next one at most.
const CALLS: usize = 3;

#[tokio::test]
async fn each_process_hands_its_locks_to_the_next() {
    let processes = env::var("LOCK_PROCESSES").map_or(20, |it| it.parse().expect("a number"));
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let mut old = service(&server).await;
    let mut fences = [0; SHARDS];
    for _ in 0..SHARDS {
        takes_one(&mut old, &mut fences).await;
    }
    for _ in 1..processes {
        let mut new = service(&server).await;
        for shard in 0..SHARDS {
            server.queued(&name(shard), 1).await;
        }
        for shard in 0..SHARDS {
            asks(&locks, &mut old, shard).await;
            let mut monitor = server.monitor().await;
            old.send(&format!("yield {shard}")).await;
            assert_eq!(takes_one(&mut new, &mut fences).await, shard);
            assert_eq!(old.line().await, format!("{shard} yielded"));
            let calls = calls(&mut monitor, &server, shard).await;
            assert!((1..=CALLS).contains(&calls.len()), "{calls:#?}");
        }
        drains(old).await;
        old = new;
    }
    for shard in 0..SHARDS {
        asks(&locks, &mut old, shard).await;
        old.send(&format!("yield {shard}")).await;
        assert_eq!(old.line().await, format!("{shard} yielded"));
    }
    drains(old).await;
    for shard in 0..SHARDS {
        let free = async || server.traces(&name(shard)).await.is_empty();
        eventually(TIME_LIMIT, free).await;
    }
}

fn name(shard: usize) -> String {
    format!("shard-{shard}")
}

async fn service(server: &RedisServer) -> Worker {
    let program = env!("CARGO_BIN_EXE_worker");
    let mut worker = Worker::spawn(program, ["service", &server.url(), &SHARDS.to_string()]).await;
    while worker.line().await != "connected" {}
    worker
}

/// It has one lock more now, with a larger fence than the last holder.
async fn takes_one(worker: &mut Worker, fences: &mut [u64; SHARDS]) -> usize {
    let line = worker.line().await;
    let (shard, fence) = line
        .split_once(" granted ")
        .unwrap_or_else(|| panic!("{line}"));
    let (shard, fence): (usize, u64) = (shard.parse().unwrap(), fence.parse().unwrap());
    assert!(fence > fences[shard], "{fence}, after {}", fences[shard]);
    fences[shard] = fence;
    shard
}

/// Its body hears that somebody would like to have the lock.
async fn asks(locks: &LockManager, worker: &mut Worker, shard: usize) {
    let told = within(TIME_LIMIT, locks.ask(name(shard))).await;
    assert_eq!(told.expect("an answer"), 1);
    assert_eq!(worker.line().await, format!("{shard} was asked"));
}

/// It ends when all of its requests were served.
async fn drains(mut worker: Worker) {
    worker.send("drain").await;
    let line = worker.line().await;
    let served = line
        .strip_prefix("served ")
        .unwrap_or_else(|| panic!("{line}"));
    assert_ne!(served, "0");
    worker.kill().await;
}

/// The commands about a lock since the monitor began to listen.
async fn calls(monitor: &mut Monitor, server: &RedisServer, shard: usize) -> Vec<Vec<String>> {
    let key = format!("{{{}}}", name(shard));
    let mut commands = monitor.commands(server).await;
    commands.retain(|command| command.iter().any(|word| word.contains(&key)));
    commands
}
