//! What a Redis server does under load is what the searched model does: every call, grant and hand-over of exclusive
//! locks, step by step.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use std::time::Duration;

use lock_runtime::LockManager;
use tests::{HistoryVerdict, HistoryWatch, RedisServer, connect};
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

const PROCESSES: usize = 4;
const TASKS: usize = 6;
const ROUNDS: usize = 40;
const TTL: Duration = Duration::from_millis(600);

/// Takes locks in every way that the model has, some of them for longer than their lease.
async fn work(locks: LockManager) {
    for _ in 0..ROUNDS {
        let key = ["hot", "hot", "hot", "cold"][fastrand::usize(..4)];
        let mut request = locks.lock(key).ttl(TTL);
        match fastrand::u8(..20) {
            0 => request = request.wait(Duration::ZERO),
            1 => request = request.min_hold(Duration::from_millis(5)),
            2 => request = request.renew(false),
            _ => {}
        }
        let patience = Duration::from_millis(if fastrand::u8(..20) == 0 { 3 } else { 60_000 });
        let Ok(Ok(guard)) = timeout(patience, request.acquire()).await else {
            continue;
        };
        let long = fastrand::u8(..100) == 0;
        sleep(Duration::from_millis(if long {
            900
        } else {
            fastrand::u64(..2)
        }))
        .await;
        drop(guard);
    }
}

/// What the model says of the work of several processes.
async fn verdict_of_work() -> HistoryVerdict {
    let server = RedisServer::start().await;
    let watch = HistoryWatch::start(&server).await;
    let mut tasks = JoinSet::new();
    let mut managers = Vec::new();
    for _ in 0..PROCESSES {
        let locks = connect(server.url()).await;
        for _ in 0..TASKS {
            tasks.spawn(work(locks.clone()));
        }
        managers.push(locks);
    }
    tasks.join_all().await;
    for locks in managers {
        locks.shutdown().await;
    }
    watch.verdict(&server).await
}

#[tokio::test]
async fn the_model_accepts_what_a_server_does() {
    let verdict = verdict_of_work().await;
    assert!(
        verdict.refused.is_empty(),
        "{}",
        verdict.refused.join("\n\n")
    );
    assert!(verdict.accepted > PROCESSES * TASKS * ROUNDS, "{verdict:?}");
    assert_eq!(verdict.outside, 0, "{verdict:?}");
}
