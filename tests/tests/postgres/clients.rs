//! Clients that are killed or stop while they wait: what they cost those behind them.

use std::time::Duration;

use tests::{LONG, TIME_LIMIT, Worker, connect, release, take, timed, within};

use crate::{manager, server, waiter, waiting};

/// How long a client may leave a grant unconfirmed.
const UNCONFIRMED: Duration = Duration::from_secs(3);
const CROWD: usize = 50;

#[tokio::test]
async fn waiters_that_are_killed_hold_nobody_up() {
    let Some(server) = server().await else { return };
    let locks = manager(&server.url()).await;
    let held = take(&locks, "key", LONG).await;
    let mut worker = Worker::locker(env!("CARGO_BIN_EXE_worker"), &server.url()).await;
    worker.send(&format!("crowd {CROWD} key apart")).await;
    waiting(&locks, CROWD).await;
    let next = waiter(&locks).await;
    worker.kill().await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    release(held).await;
    let (took, next) = timed(next).await;
    println!("{CROWD} killed waiters cost {took:?}");
    assert!(took < UNCONFIRMED / 4, "held up for {took:?}");
    release(next.unwrap()).await;
}

#[tokio::test]
async fn waiters_of_a_stopped_process_hold_others_up_once() {
    let Some(server) = server().await else { return };
    let locks = manager(&server.url()).await;
    let held = take(&locks, "key", LONG).await;
    let mut worker = Worker::locker(env!("CARGO_BIN_EXE_worker"), &server.url()).await;
    worker.send(&format!("crowd {CROWD} key apart")).await;
    waiting(&locks, CROWD).await;
    let next = waiter(&locks).await;
    worker.pause();
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
    assert!(took < TTL + Duration::from_secs(1), "{took:?}");
    assert!(next.fencing_token().get() > fence);
    within(TIME_LIMIT, next.release_confirmed()).await.unwrap();
}
