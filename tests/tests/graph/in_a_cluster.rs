//! A graph of a cluster while one of its masters is gone.

use std::sync::Arc;

use lock_runtime::{LockError, inspect::Graph};
use tests::{ClusterFleet, TIME_LIMIT, connect, eventually, within};
use tokio::sync::Barrier;
use tokio::task::JoinHandle;

use crate::{cycles, edges, graph, nested, seen};

#[tokio::test]
async fn a_graph_without_a_master_names_it() {
    let fleet = ClusterFleet::builder().option("cluster-require-full-coverage", "no");
    let mut fleet = fleet.start().await;
    let locks = connect(fleet.url()).await;
    let mut keys = Vec::new();
    for node in 0..3 {
        keys.push(fleet.key_at(node).await);
    }
    let [gone, a, b] = [0, 1, 2].map(|at| &*keys[at]);
    let all = Arc::new(Barrier::new(3));
    let tasks = [[a, b], [b, a], [gone, a]].map(|order| nested(&locks, order, &all));
    let whole = seen(&locks, 3).await;
    assert!(whole.unanswered.is_empty(), "{whole:?}");

    let address = fleet.nodes()[0].addr().to_string();
    fleet.node_mut(0).kill().await;
    let is_partial = |it: &Graph| it.unanswered.len() == 1 && it.edges.len() == 2;
    eventually(TIME_LIMIT, async || is_partial(&graph(&locks).await)).await;
    let partial = graph(&locks).await;
    assert!(partial.unanswered[0].starts_with(&address), "{partial:?}");
    let waits = edges(&partial);
    assert!(waits.iter().all(|(holds, _)| holds != gone), "{waits:?}");
    let mut cycle = [a, b];
    cycle.sort_unstable();
    assert_eq!(cycles(&partial), [cycle]);
    let overview = within(TIME_LIMIT, locks.overview("*")).await;
    let failed = overview.expect_err("a part is missing");
    assert!(matches!(failed, LockError::Unavailable { .. }), "{failed}");
    assert!(failed.to_string().contains(&address), "{failed}");
    tasks.iter().for_each(JoinHandle::abort);
}
