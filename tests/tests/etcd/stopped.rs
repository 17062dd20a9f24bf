//! Clients that are stopped past their leases, all threads at once.
//!
//! Section: etcd.md#what-it-promises

use tests::{
    EtcdServer, LONG, Proxy, TIME_LIMIT, Worker, boottime, connect, eventually, release, take,
    within,
};

use crate::TTL;

/// A server on a busy machine may seem to be unavailable for a while.
const PATIENT: &str = "unavailable_wait=forever";

#[tokio::test]
async fn a_client_that_was_stopped_past_its_lease_does_not_go_on() {
    let Some(server) = EtcdServer::start("a stopped client").await else {
        return;
    };
    let locks = connect(&*server.url()).await;
    let ttl = TTL.as_millis().to_string();
    let args = ["paused-process", &server.url(), "key", &ttl];
    let mut worker = Worker::spawn(env!("CARGO_BIN_EXE_worker"), args).await;
    let fence = worker.take().await;
    worker.pause();
    let next = within(TIME_LIMIT, locks.lock("key").wait_forever().acquire()).await;
    let next = next.unwrap();
    assert!(next.fencing_token().get() > fence);
    let resumed = boottime().as_nanos();
    worker.resume();
    let polls = worker.polls_until_lost(fence).await;
    assert!(polls.iter().all(|poll| *poll < resumed), "a poll came late");
    assert!(next.is_held());
    release(next).await;
}

#[tokio::test]
async fn a_waiter_that_was_stopped_past_its_lease_waits_again() {
    let Some(server) = EtcdServer::start("a stopped waiter").await else {
        return;
    };
    let locks = connect(&*server.url()).await;
    let guard = take(&locks, "key", LONG).await;
    let url = format!("{}?{PATIENT}", server.url());
    let mut worker = Worker::locker(env!("CARGO_BIN_EXE_worker"), &url).await;
    worker.send("all waiter 2000 key").await;
    let waiting = async |count| server.keys("lock/key/").await.len() == count;
    eventually(TIME_LIMIT, async || waiting(2).await).await;
    worker.pause();
    eventually(TIME_LIMIT, async || waiting(1).await).await;
    let fence = guard.fencing_token().get();
    release(guard).await;
    let taken = take(&locks, "key", LONG).await;
    worker.resume();
    eventually(TIME_LIMIT, async || waiting(2).await).await;
    assert!(taken.is_held());
    release(taken).await;
    assert!(worker.fence().await > fence);
}

#[tokio::test]
async fn a_client_that_was_stopped_before_it_heard_of_its_grant_waits_again() {
    let Some(server) = EtcdServer::start("a grant that was not heard of").await else {
        return;
    };
    let proxy = Proxy::start(server.addr());
    let locks = connect(&*server.url()).await;
    let url = format!("etcd://{}?{PATIENT}", proxy.addr());
    let mut worker = Worker::locker(env!("CARGO_BIN_EXE_worker"), &url).await;
    worker.send("all first 2000 another").await;
    worker.fence().await;
    let waiting = async |count| server.keys("lock/key/").await.len() == count;
    proxy.replies().hold();
    worker.send("all second 2000 key").await;
    eventually(TIME_LIMIT, async || waiting(1).await).await;
    worker.pause();
    // What it reads first when it goes on.
    proxy.replies().pass();
    eventually(TIME_LIMIT, async || waiting(0).await).await;
    let taken = take(&locks, "key", LONG).await;
    let fence = taken.fencing_token().get();
    worker.resume();
    eventually(TIME_LIMIT, async || waiting(2).await).await;
    assert!(taken.is_held());
    release(taken).await;
    assert!(worker.fence().await > fence);
}
