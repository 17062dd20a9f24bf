//! Two processes on one Redis server that wait for each other.

use lock_runtime::inspect::Graph;
use tests::{RedisServer, TIME_LIMIT, Worker, connect, eventually, within};

use crate::{cycles, graph, seen};

async fn worker(server: &RedisServer) -> Worker {
    Worker::locker(env!("CARGO_BIN_EXE_worker"), &server.url()).await
}

#[tokio::test]
async fn two_processes_that_wait_for_each_other_are_named() {
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let (mut one, mut other) = (worker(&server).await, worker(&server).await);
    for (worker, order) in [(&mut one, "nest one a b"), (&mut other, "nest other b a")] {
        worker.send(order).await;
        let line = worker.line().await;
        assert!(line.ends_with("is in the body"), "{line}");
    }
    one.send("inwards").await;
    other.send("inwards").await;
    let found = seen(&locks, 2).await;
    assert_eq!(cycles(&found), [["a", "b"]]);
    let processes: Vec<_> = found.edges.iter().map(|it| it.holder.process).collect();
    assert_eq!(processes, [Some(one.pid()), Some(other.pid())]);

    // A process that is stopped cannot say whether it still holds its lock.
    other.pause();
    let is_unsure = |it: &Graph| it.cycles.is_empty() && it.unsure.len() == 1;
    eventually(TIME_LIMIT, async || is_unsure(&graph(&locks).await)).await;
    other.resume();
    eventually(TIME_LIMIT, async || graph(&locks).await.cycles.len() == 1).await;

    assert_eq!(
        within(TIME_LIMIT, locks.force_release("b")).await.unwrap(),
        1
    );
    assert_eq!(one.line().await, "one has both");
    assert!(graph(&locks).await.cycles.is_empty());
}
