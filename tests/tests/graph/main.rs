//! Promise: a graph shows which holders wait for other locks, and each cycle in it is real.
//!
//! Section: guarantees.md#looking-at-a-lock
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

mod chains;
mod in_a_cluster;
mod two_processes;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lock_runtime::inspect::{Graph, Severity};
use lock_runtime::{LockError, LockManager, LockRequest};
use tests::{LONG, Store, TIME_LIMIT, eventually, on_every_store, queued, take, waits, within};
use tokio::sync::Barrier;
use tokio::task::{JoinHandle, JoinSet};

on_every_store! {
    holders_that_wait_for_each_other_are_a_cycle [graph],
    a_cycle_may_have_any_length [graph],
    a_task_that_holds_nothing_is_in_no_cycle [graph],
    an_acquisition_of_several_keys_holds_and_waits [graph several_keys],
    readers_are_in_the_way_of_a_writer [graph read],
    one_of_several_permits_is_in_nobodys_way [graph permits],
    a_lock_around_two_bodies_is_held_too [graph],
    no_cycle_is_seen_among_busy_holders_that_keep_an_order [graph],
    a_store_that_does_not_know_says_so,
}

async fn graph(locks: &LockManager) -> Graph {
    within(TIME_LIMIT, locks.graph()).await.unwrap()
}

/// Each cycle of a graph: the locks that are held in it, in order.
fn cycles(graph: &Graph) -> Vec<Vec<String>> {
    let held = |cycle: &lock_runtime::inspect::Cycle| {
        let mut held: Vec<_> = cycle.edges.iter().map(|it| it.holds.to_string()).collect();
        held.sort_unstable();
        held
    };
    graph.cycles.iter().map(held).collect()
}

/// The edges of a graph, in order: what is held, and what is waited for.
fn edges(graph: &Graph) -> Vec<(String, String)> {
    let both = graph.edges.iter();
    both.map(|it| (it.holds.to_string(), it.waits_for.to_string()))
        .collect()
}

fn pairs(all: &[[&str; 2]]) -> Vec<(String, String)> {
    all.iter()
        .map(|[one, other]| ((*one).to_owned(), (*other).to_owned()))
        .collect()
}

/// Returns when so many edges are there.
async fn seen(locks: &LockManager, count: usize) -> Graph {
    eventually(TIME_LIMIT, async || graph(locks).await.edges.len() == count).await;
    graph(locks).await
}

fn long(locks: &LockManager, key: &str) -> LockRequest {
    locks.lock(key).ttl(LONG).wait_forever()
}

/// Takes the first lock, and within its body the second one when all are there.
fn nested(
    locks: &LockManager,
    [outer, inner]: [&str; 2],
    all: &Arc<Barrier>,
) -> JoinHandle<Result<(), LockError>> {
    nest(long(locks, outer), long(locks, inner), all)
}

fn nest(
    outer: LockRequest,
    inner: LockRequest,
    all: &Arc<Barrier>,
) -> JoinHandle<Result<(), LockError>> {
    let all = Arc::clone(all);
    tokio::spawn(async move {
        let body = outer.run(async move |_| {
            all.wait().await;
            inner.function("graph::inner").acquire().await.map(drop)
        });
        body.await?
    })
}

async fn holders_that_wait_for_each_other_are_a_cycle(store: Store) {
    let managers = [store.manager().await, store.manager().await];
    let observer = store.manager().await;
    let both = Arc::new(Barrier::new(2));
    assert_eq!(graph(&observer).await, Graph::default());
    let one = nest(
        long(&managers[0], "a").function("graph::one"),
        long(&managers[0], "b"),
        &both,
    );
    let other = nested(&managers[1], ["b", "a"], &both);
    let graph = seen(&observer, 2).await;
    assert_eq!(edges(&graph), pairs(&[["a", "b"], ["b", "a"]]));
    assert_eq!(cycles(&graph), [["a", "b"]]);
    assert!(graph.unsure.is_empty());
    let edge = &graph.edges[0];
    let (holder, waiter) = (&edge.holder, &edge.waiter);
    assert_eq!(holder.process, Some(std::process::id()));
    assert_eq!(holder.function.as_deref(), Some("graph::one"));
    assert_eq!(waiter.function.as_deref(), Some("graph::inner"));
    assert!(
        holder.since.is_some() && waiter.waited.is_some(),
        "{edge:?}"
    );

    let findings = within(TIME_LIMIT, observer.diagnose()).await.unwrap();
    let found = findings.iter().find(|it| it.check == "cycles").unwrap();
    assert_eq!(found.severity, Severity::Error);
    let cycle = graph.cycles[0].to_string();
    for part in ["holds `a`", "waits for `b`", "holds `b`", "`graph::one`"] {
        assert!(
            cycle.contains(part) && found.found.contains(part),
            "{cycle}"
        );
    }

    one.abort();
    within(TIME_LIMIT, other).await.unwrap().unwrap();
    assert_eq!(self::graph(&observer).await, Graph::default());
}

async fn a_cycle_may_have_any_length(store: Store) {
    let managers = [store.manager().await, store.manager().await];
    let all = Arc::new(Barrier::new(4));
    let ways = [["a", "b"], ["b", "c"], ["c", "d"], ["d", "b"]];
    let tasks: Vec<_> = (0..4)
        .map(|at| nested(&managers[at % 2], ways[at], &all))
        .collect();
    let graph = seen(&managers[0], 4).await;
    assert_eq!(edges(&graph), pairs(&ways));
    assert_eq!(cycles(&graph), [["b", "c", "d"]]);
    tasks.iter().for_each(JoinHandle::abort);
}

async fn a_task_that_holds_nothing_is_in_no_cycle(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let both = Arc::new(Barrier::new(2));
    let _kept = take(&locks, "c", LONG).await;
    // Of the two tasks of this manager, one holds `a`, and the other one waits for `b`.
    let holds = nested(&locks, ["a", "c"], &both);
    let waits_and_holds = nested(&others, ["b", "a"], &both);
    waits(&others, "c", 1).await;
    waits(&others, "a", 1).await;
    let _waiter = queued(&locks, long(&locks, "b")).await;
    waits(&others, "b", 1).await;
    // A guard that nobody works under tells nothing of the waits of its task.
    let _guard = take(&locks, "d", LONG).await;
    let _waiter_beside = queued(&locks, long(&locks, "b")).await;
    let graph = seen(&others, 2).await;
    assert_eq!(edges(&graph), pairs(&[["a", "c"], ["b", "a"]]));
    assert!(graph.cycles.is_empty());
    let findings = within(TIME_LIMIT, others.diagnose()).await.unwrap();
    let found = findings.iter().find(|it| it.check == "cycles").unwrap();
    assert_eq!(found.severity, Severity::Fine);
    holds.abort();
    waits_and_holds.abort();
}

async fn an_acquisition_of_several_keys_holds_and_waits(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let alone = Arc::new(Barrier::new(2));
    let other = nested(&others, ["b", "a"], &alone);
    waits_for_holder(&locks, "b").await;
    let request = locks.lock_all(["a", "b"]).ttl(LONG).wait_forever();
    let all = tokio::spawn(request.acquire());
    waits(&locks, "b", 1).await;
    alone.wait().await;
    let graph = seen(&locks, 2).await;
    assert_eq!(edges(&graph), pairs(&[["a", "b"], ["b", "a"]]));
    assert_eq!(cycles(&graph), [["a", "b"]]);
    all.abort();
    other.abort();
}

async fn waits_for_holder(locks: &LockManager, key: &str) {
    let is_held = async || locks.status(key).await.is_ok_and(|it| it.is_held());
    eventually(TIME_LIMIT, is_held).await;
}

async fn readers_are_in_the_way_of_a_writer(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let both = Arc::new(Barrier::new(2));
    let _reader = within(TIME_LIMIT, long(&others, "a").read().acquire()).await;
    let one = nest(long(&locks, "a").read(), long(&locks, "b"), &both);
    let other = nest(long(&others, "b"), long(&others, "a"), &both);
    let graph = seen(&others, 2).await;
    assert_eq!(cycles(&graph), [["a", "b"]]);
    one.abort();
    other.abort();
}

async fn one_of_several_permits_is_in_nobodys_way(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let both = Arc::new(Barrier::new(2));
    let _other_permit = within(TIME_LIMIT, long(&others, "a").permits(2).acquire()).await;
    let one = nest(long(&locks, "a").permits(2), long(&locks, "b"), &both);
    let other = nest(long(&others, "b"), long(&others, "a").permits(2), &both);
    let graph = seen(&others, 2).await;
    assert_eq!(edges(&graph), pairs(&[["a", "b"], ["b", "a"]]));
    assert!(graph.cycles.is_empty(), "{graph:?}");
    one.abort();
    other.abort();
}

async fn a_lock_around_two_bodies_is_held_too(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let both = Arc::new(Barrier::new(2));
    let (middle, inner, all) = (long(&locks, "m"), long(&locks, "b"), Arc::clone(&both));
    let one = tokio::spawn(long(&locks, "a").run(async move |_| {
        let body = middle.run(async move |_| {
            all.wait().await;
            inner.acquire().await.map(drop)
        });
        body.await?
    }));
    let other = nested(&others, ["b", "a"], &both);
    let graph = seen(&others, 3).await;
    assert_eq!(edges(&graph), pairs(&[["a", "b"], ["b", "a"], ["m", "b"]]));
    assert_eq!(cycles(&graph), [["a", "b"]]);
    one.abort();
    other.abort();
}

async fn no_cycle_is_seen_among_busy_holders_that_keep_an_order(store: Store) {
    const HOLDERS: usize = 50;
    let managers = [store.manager().await, store.manager().await];
    let stop = Arc::new(AtomicBool::new(false));
    let mut tasks = JoinSet::new();
    for number in 0..HOLDERS {
        let (locks, stop) = (managers[number % 2].clone(), Arc::clone(&stop));
        let names = ["a", "b", "c"];
        let [outer, inner] = [[0, 1], [1, 2], [0, 2]][number % 3].map(|it| names[it]);
        tasks.spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                let inner = long(&locks, inner);
                let body = long(&locks, outer).run(async move |_| inner.acquire().await.map(drop));
                body.await.unwrap().unwrap();
            }
        });
    }
    let observer = store.manager().await;
    for _ in 0..20 {
        let graph = graph(&observer).await;
        assert!(graph.cycles.is_empty(), "{graph:?}");
        let ordered = graph.edges.iter().all(|it| it.holds < it.waits_for);
        assert!(ordered, "{graph:?}");
    }
    stop.store(true, Ordering::Relaxed);
    while let Some(done) = within(TIME_LIMIT, tasks.join_next()).await {
        done.unwrap();
    }
}

async fn a_store_that_does_not_know_says_so(store: Store) {
    let locks = store.manager().await;
    let knows = store.can().contains(&"graph");
    match within(TIME_LIMIT, locks.graph()).await {
        Ok(graph) => assert!(knows && graph == Graph::default()),
        Err(LockError::InvalidOptions { .. }) => assert!(!knows),
        Err(other) => panic!("{other}"),
    }
    let _guard = locks.lock("key").ttl(Duration::from_secs(60)).acquire();
}
