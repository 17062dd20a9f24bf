//! Processes that are replaced one after the other hand over their lock, and none of their bodies is stopped.
//!
//! Section: guarantees.md#asking-to-yield

use tests::{RedisServer, TIME_LIMIT, Worker, connect, eventually, within};

const PROCESSES: usize = 5;

#[tokio::test]
async fn each_process_hands_its_lock_to_the_next() {
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let mut last = 0;
    let mut old = leader(&server).await;
    last = leads(&mut old, last).await;
    for _ in 1..PROCESSES {
        let mut new = leader(&server).await;
        server.queued("leader", 1).await;
        let told = within(TIME_LIMIT, locks.ask("leader")).await;
        assert_eq!(told.expect("an answer"), 1);
        assert_eq!(old.line().await, "leads was asked");
        assert_eq!(old.line().await, "leads released true");
        last = leads(&mut new, last).await;
        old.kill().await;
        old = new;
    }
    let told = within(TIME_LIMIT, locks.ask("leader")).await;
    assert_eq!(told.expect("an answer"), 1);
    assert_eq!(old.line().await, "leads was asked");
    assert_eq!(old.line().await, "leads released true");
    eventually(TIME_LIMIT, async || {
        server.traces("leader").await.is_empty()
    })
    .await;
}

/// A process that takes the lock, and keeps it until it is asked for it.
async fn leader(server: &RedisServer) -> Worker {
    let mut worker = Worker::locker(env!("CARGO_BIN_EXE_worker"), &server.url()).await;
    worker.send("yield leads leader").await;
    worker
}

/// It has the lock now, with a larger fence than the last one.
async fn leads(worker: &mut Worker, last: u64) -> u64 {
    let fence = worker.fence().await;
    assert!(fence > last, "{fence}, after {last}");
    fence
}
