//! Clients that are killed or stop while they wait: what they cost those behind them.
//!
//! Section: postgres.md#what-it-promises

use std::time::Duration;

use lock_runtime::{Acquire, LockGuard, LockManager};
use tests::{
    LONG, PostgresServer, TIME_LIMIT, Worker, connect, eventually, release, take, timed, within,
};

use tokio::time::sleep;

use crate::{CARRIED_OUT, manager, server, waiter, waiting};

/// How long a client may leave a grant unconfirmed.
const UNCONFIRMED: Duration = Duration::from_secs(3);
const CROWD: usize = 50;

/// A lock that is held, and that fifty of another process wait for ahead of one of ours.
struct Scene {
    server: PostgresServer,
    locks: LockManager,
    held: LockGuard,
    worker: Worker,
    next: Acquire,
}

impl Scene {
    async fn new() -> Option<Self> {
        let server = server().await?;
        let locks = manager(&server.url()).await;
        let held = take(&locks, "key", LONG).await;
        let mut worker = Worker::locker(env!("CARGO_BIN_EXE_worker"), &server.url()).await;
        worker.send(&format!("crowd {CROWD} key apart")).await;
        waiting(&locks, CROWD).await;
        let next = waiter(&locks).await;
        Some(Self {
            server,
            locks,
            held,
            worker,
            next,
        })
    }
}

#[tokio::test]
async fn waiters_that_are_killed_hold_nobody_up() {
    let Some(mut scene) = Scene::new().await else {
        return;
    };
    let process = scene.worker.pid();
    scene.worker.kill().await;
    let gone = async || scene.server.backends_of(process).await.is_empty();
    eventually(TIME_LIMIT, gone).await;
    let Scene { held, next, .. } = scene;
    release(held).await;
    let (took, next) = timed(next).await;
    println!("{CROWD} killed waiters cost {took:?}");
    assert!(took < UNCONFIRMED / 4, "held up for {took:?}");
    release(next.unwrap()).await;
}

#[tokio::test]
async fn waiters_of_a_stopped_process_hold_others_up_once() {
    let Some(scene) = Scene::new().await else {
        return;
    };
    let Scene {
        server: _server,
        locks,
        held,
        mut worker,
        next,
    } = scene;
    worker.pause();
    sleep(CARRIED_OUT).await;
    release(held).await;
    let (took, next) = timed(next).await;
    println!("{CROWD} stopped waiters cost {took:?}");
    assert!(
        took < UNCONFIRMED + Duration::from_secs(1),
        "held up for {took:?}"
    );
    // They come back, behind.
    worker.resume();
    waiting(&locks, CROWD).await;
    release(next.unwrap()).await;
    for _ in 0..3 {
        worker.fence().await;
    }
}

/// A holder that is killed says nothing any more: its lease has to end.
#[tokio::test]
async fn a_holder_that_is_killed_is_replaced_when_its_lease_ends() {
    const TTL: Duration = Duration::from_secs(2);
    let Some(server) = server().await else { return };
    let others = connect(&*server.url()).await;
    let ttl = TTL.as_millis().to_string();
    let url = server.url();
    let args = ["holder", &url, "exclusive", "key", &ttl];
    let mut holder = Worker::spawn(env!("CARGO_BIN_EXE_worker"), args).await;
    let fence = holder.fence().await;
    let next = waiter(&others).await;
    holder.kill().await;
    let (took, next) = timed(next).await;
    let next = next.unwrap();
    assert!(took < 2 * TTL, "{took:?}");
    assert!(next.fencing_token().get() > fence);
    within(TIME_LIMIT, next.release_confirmed()).await.unwrap();
}
