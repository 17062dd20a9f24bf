//! What a server of Redis, etcd or ZooKeeper does to exclusive locks under load is what the searched model does, step by step.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use std::time::Duration;

use lock_runtime::LockManager;
use tests::{
    EtcdServer, HistoryVerdict, HistoryWatch, RedisServer, ZooKeeperServer, connect, etcd_verdict,
    zookeeper_verdict,
};
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
    accepts(&verdict, PROCESSES * TASKS * ROUNDS + 1);
}

/// Accepts all that was done, and so many steps at least.
fn accepts(verdict: &HistoryVerdict, least: usize) {
    assert!(
        verdict.refused.is_empty(),
        "{}",
        verdict.refused.join("\n\n")
    );
    assert!(verdict.accepted >= least, "{verdict:?}");
    assert_eq!(verdict.outside, 0, "{verdict:?}");
}

/// All bodies are of one process: `make torture` has several. Each has an entry that is made and deleted.
fn accepts_entries(verdict: &HistoryVerdict, begun: usize) {
    assert!(begun > 100, "{verdict:?}");
    accepts(verdict, 3 * begun);
}

fn of_this_process(begun: Vec<(String, u64)>) -> impl Iterator<Item = (String, u64, u32)> {
    let process = std::process::id();
    begun
        .into_iter()
        .map(move |(lock, fence)| (lock, fence, process))
}

#[tokio::test]
async fn the_model_accepts_what_a_member_of_etcd_does() {
    let Some(server) = EtcdServer::start("histories").await else {
        return;
    };
    let begun = work_of_all(&server.url()).await;
    let count = begun.len();
    let verdict = etcd_verdict(&server, "", of_this_process(begun)).await;
    accepts_entries(&verdict, count);
}

#[tokio::test]
async fn the_model_accepts_what_a_server_of_zookeeper_does() {
    let Some(server) = ZooKeeperServer::start("histories").await else {
        return;
    };
    let begun = work_of_all(&server.url("histories")).await;
    let count = begun.len();
    let verdict = zookeeper_verdict(server.history(), of_this_process(begun));
    accepts_entries(&verdict, count);
}
