//! What a server of Redis or etcd does to exclusive locks under load is what the searched model does, step by step.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use std::time::Duration;

use lock_runtime::LockManager;
use tests::{EtcdServer, HistoryVerdict, HistoryWatch, RedisServer, connect, etcd_verdict};
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

const PROCESSES: usize = 4;
const TASKS: usize = 6;
const ROUNDS: usize = 40;
const TTL: Duration = Duration::from_millis(600);

/// Takes locks in every way that the model has, some of them for longer than their lease. Returns the bodies that began:
/// each with its lock and its fence.
async fn work(locks: LockManager) -> Vec<(String, u64)> {
    let mut begun = Vec::new();
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
        if guard.is_held() {
            begun.push((key.to_owned(), guard.fencing_token().get()));
        }
        let long = fastrand::u8(..100) == 0;
        sleep(Duration::from_millis(if long {
            900
        } else {
            fastrand::u64(..2)
        }))
        .await;
        drop(guard);
    }
    begun
}

/// The work of several managers; the bodies that began.
async fn work_of_all(url: &str) -> Vec<(String, u64)> {
    let mut tasks = JoinSet::new();
    let mut managers = Vec::new();
    for _ in 0..PROCESSES {
        let locks = connect(url).await;
        for _ in 0..TASKS {
            tasks.spawn(work(locks.clone()));
        }
        managers.push(locks);
    }
    let begun = tasks.join_all().await.concat();
    for locks in managers {
        locks.shutdown().await;
    }
    begun
}

async fn verdict_of_work() -> HistoryVerdict {
    let server = RedisServer::start().await;
    let watch = HistoryWatch::start(&server).await;
    work_of_all(&server.url()).await;
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

#[tokio::test]
async fn the_model_accepts_what_a_member_of_etcd_does() {
    let Some(server) = EtcdServer::start("histories").await else {
        return;
    };
    let begun = work_of_all(&server.url()).await;
    let count = begun.len();
    let process = std::process::id();
    let begun = begun
        .into_iter()
        .map(|(lock, fence)| (lock, fence, process));
    let verdict = etcd_verdict(&server, "", begun).await;
    assert!(
        verdict.refused.is_empty(),
        "{}",
        verdict.refused.join("\n\n")
    );
    // Each has an entry that is made and deleted. All are of one process: `make torture` has several.
    assert!(verdict.accepted >= 3 * count && count > 100, "{verdict:?}");
    assert_eq!(verdict.outside, 0, "{verdict:?}");
}
