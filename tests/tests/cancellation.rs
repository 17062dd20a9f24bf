//! An acquire or a body that is dropped, at whatever moment, leaves nothing on the server.
//!
//! Section: guarantees.md#nothing-is-left-behind

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    task::{Context, Poll},
    thread,
    time::{Duration, Instant},
};

use lock_runtime::{LockError, LockManager};
use tests::{Proxy, RedisServer, Stop, begin, eventually, leaves_nothing, settled, unique, within};

/// Far longer than any test: what is gone in time has not just expired.
const TTL: Duration = Duration::from_secs(60);
const SOON: Duration = Duration::from_secs(5);

/// How many moments are tried.
const ROUNDS: u32 = 300;

async fn connect(url: String) -> LockManager {
    let locks = tests::connect(url).await;
    settled(&locks).await;
    locks
}

/// Lets time pass, more exactly than a timer.
fn spin(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        thread::yield_now();
    }
}

/// Polls a future once.
async fn is_ready<F: Future>(mut future: Pin<&mut F>) -> bool {
    poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx).is_ready())).await
}

#[tokio::test]
async fn an_acquire_that_was_never_polled_asks_nothing() {
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let key = unique("unpolled");
    drop(locks.lock(&key).ttl(TTL).acquire());
    settled(&locks).await;
    assert_eq!(server.traces(&key).await, [""; 0]);
    // Two for each of the other locks.
    assert_eq!(server.calls("evalsha").await, 4);
}

#[tokio::test]
async fn an_acquire_whose_reply_is_late() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr());
    let locks = connect(proxy.url()).await;
    let key = unique("late");
    proxy.replies().hold();
    let mut acquire = Box::pin(locks.lock(&key).ttl(TTL).acquire());
    begin(&mut acquire.as_mut()).await;
    within(SOON, proxy.replies().held()).await;
    assert!(server.owner(&key).await.is_some(), "it was done");
    drop(acquire);
    proxy.replies().pass();
    leaves_nothing(&server, &key, SOON).await;
}

#[tokio::test]
async fn an_acquire_whose_reply_and_leave_are_lost() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr());
    let locks = connect(proxy.url()).await;
    let key = unique("lost");
    proxy.replies().hold();
    let mut acquire = Box::pin(locks.lock(&key).ttl(TTL).acquire());
    begin(&mut acquire.as_mut()).await;
    within(SOON, proxy.replies().held()).await;
    proxy.requests().hold();
    drop(acquire);
    within(SOON, proxy.requests().held()).await;
    proxy.cut().await;
    proxy.requests().pass();
    proxy.replies().pass();
    leaves_nothing(&server, &key, SOON).await;
}

#[tokio::test]
async fn an_acquire_that_is_still_on_its_way() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr());
    let locks = connect(proxy.url()).await;
    let key = unique("on-its-way");
    proxy.requests().hold();
    let mut acquire = Box::pin(locks.lock(&key).ttl(TTL).acquire());
    begin(&mut acquire.as_mut()).await;
    within(SOON, proxy.requests().held()).await;
    drop(acquire);
    let calls = server.calls("evalsha").await;
    proxy.requests().pass();
    let done = async || server.calls("evalsha").await >= calls + 2;
    eventually(SOON, done).await;
    leaves_nothing(&server, &key, SOON).await;
}

#[tokio::test]
async fn a_waiter_leaves_the_queue() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr());
    let holder = connect(server.url()).await;
    let waiter = connect(proxy.url()).await;
    let key = unique("queue");
    let guard = holder.lock(&key).ttl(TTL).acquire().await;
    let guard = guard.expect("the lock is free");

    let mut acquire = Box::pin(waiter.lock(&key).ttl(TTL).wait_forever().acquire());
    begin(&mut acquire.as_mut()).await;
    server.queued(&key, 1).await;
    drop(acquire);
    server.queued(&key, 0).await;

    // The leave is lost with its connection, and said again.
    let mut acquire = Box::pin(waiter.lock(&key).ttl(TTL).wait_forever().acquire());
    begin(&mut acquire.as_mut()).await;
    server.queued(&key, 1).await;
    proxy.requests().hold();
    drop(acquire);
    within(SOON, proxy.requests().held()).await;
    proxy.cut().await;
    proxy.requests().pass();
    server.queued(&key, 0).await;

    let gave_up = waiter.lock(&key).ttl(TTL).wait(Duration::from_millis(100));
    let error = gave_up.acquire().await.expect_err("the lock is held");
    assert!(matches!(error, LockError::Contended { .. }), "{error}");
    server.queued(&key, 0).await;

    assert_eq!(server.traces(&key).await, [RedisServer::owner_key(&key)]);
    guard.release();
    leaves_nothing(&server, &key, SOON).await;
}

#[tokio::test]
async fn a_waiter_that_leaves_while_its_grant_is_on_the_way() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr());
    let holder = connect(server.url()).await;
    let waiter = connect(proxy.url()).await;
    let key = unique("granted");
    for cut in [false, true] {
        let guard = holder.lock(&key).ttl(TTL).acquire().await;
        let guard = guard.expect("the lock is free");
        let mut acquire = Box::pin(waiter.lock(&key).ttl(TTL).wait_forever().acquire());
        begin(&mut acquire.as_mut()).await;
        server.queued(&key, 1).await;

        proxy.replies().hold();
        guard.release();
        within(SOON, proxy.replies().held()).await;
        assert!(server.owner(&key).await.is_some(), "it was granted");
        drop(acquire);
        if cut {
            proxy.cut().await;
        }
        proxy.replies().pass();
        // A grant lasts 3 s if nobody claims it: this one is given back.
        leaves_nothing(&server, &key, Duration::from_secs(2)).await;
    }
}

#[tokio::test]
async fn a_waiter_that_leaves_around_its_grant() {
    let server = RedisServer::start().await;
    let holder = connect(server.url()).await;
    let waiter = connect(server.url()).await;
    let key = unique("around");
    let mut granted = 0;
    for round in 0..ROUNDS {
        let guard = holder.lock(&key).ttl(TTL).wait(SOON).acquire().await;
        let guard = guard.expect("whoever was cancelled is out of the way");
        let mut acquire = Box::pin(waiter.lock(&key).ttl(TTL).acquire());
        begin(&mut acquire.as_mut()).await;
        if round % 2 == 0 {
            server.queued(&key, 1).await;
        }
        // Else a busy machine may have handed each of them over before it is left.
        if round % 10 == 9 {
            drop(acquire);
            drop(guard);
            continue;
        }
        drop(guard);
        // A hand-over takes some hundred microseconds.
        spin(Duration::from_micros(u64::from(round % 100) * 10));
        granted += u32::from(is_ready(acquire.as_mut()).await);
    }
    assert!((1..ROUNDS).contains(&granted), "always the same: {granted}");
    settled(&waiter).await;
    leaves_nothing(&server, &key, SOON).await;
}

#[tokio::test]
async fn an_acquire_of_a_free_lock_dropped_at_any_moment() {
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let mut granted = 0;
    for round in 0..ROUNDS {
        let mut acquire = pin!(locks.lock(unique("free")).ttl(TTL).acquire());
        let at_once = is_ready(acquire.as_mut()).await;
        spin(Duration::from_micros(u64::from(round % 100) * 10));
        granted += u32::from(at_once || is_ready(acquire).await);
    }
    assert!((1..ROUNDS).contains(&granted), "always the same: {granted}");
    settled(&locks).await;
    let nothing = async || server.keys("lock:{*").await.is_empty();
    eventually(SOON, nothing).await;
}

#[tokio::test]
async fn an_acquire_dropped_while_its_grant_comes_in() {
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let keys = ["two", "three", "four"].map(unique);
    let [mut two, mut three, mut four] =
        [0, 1, 2].map(|n| Box::pin(locks.lock(&keys[n]).ttl(TTL).acquire()));

    // Now and then the answer is there before the first poll returns.
    let (_one, stopped, hold) = loop {
        let mut one = Box::pin(locks.lock(unique("one")).ttl(TTL).acquire());
        let (waker, stopped, hold) = Stop::waker();
        let polled = one.as_mut().poll(&mut Context::from_waker(&waker));
        if polled.is_pending() {
            break (one, stopped, hold);
        }
    };
    stopped.recv_timeout(SOON).expect("one is answered");
    // The others are sent together and answered one after the other. That four is not wanted is said in between,
    // and so not heard before its answer.
    let (waker, stopped, next) = Stop::waker();
    begin(&mut two.as_mut()).await;
    assert!(
        three
            .as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_pending()
    );
    begin(&mut four.as_mut()).await;
    drop(hold);
    stopped.recv_timeout(SOON).expect("three is answered");
    assert!(server.owner(&keys[2]).await.is_some(), "four is granted");
    drop(four);
    drop(next);
    leaves_nothing(&server, &keys[2], SOON).await;
}
