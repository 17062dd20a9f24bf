//! Promise: whichever thread does the work of a manager, nobody is left waiting and nothing is left behind.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use std::{
    cell::RefCell,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    thread::{self, ThreadId},
    time::Duration,
};

use futures_executor::block_on;
use lock_runtime::{Acquire, LockError, LockGuard, LockManager};
use tests::{RedisServer, connect, eventually, leaves_nothing, unique, within};
use tokio::{sync::mpsc, task::JoinSet};

const SOON: Duration = Duration::from_secs(10);
/// Far longer than any test: what is free in time has not just expired.
const TTL: Duration = Duration::from_secs(60);

/// Takes and frees locks that its threads share, with release and next acquire side by side.
fn cycles(locks: &LockManager, thread: usize) {
    for turn in 0..300 {
        let key = ["a", "b", "c"][(thread + turn) % 3];
        let request = locks.lock(key).ttl(TTL).wait(SOON);
        let guard = block_on(request.acquire()).unwrap();
        match turn % 3 {
            0 => drop(guard),
            1 => guard.release(),
            _ => assert!(block_on(guard.release_confirmed()).unwrap()),
        }
    }
}

async fn no_wake_up_is_lost(locks: LockManager) {
    let mut threads = JoinSet::new();
    for number in 0..6 {
        let locks = locks.clone();
        threads.spawn_blocking(move || cycles(&locks, number));
    }
    within(6 * SOON, threads.join_all()).await;
}

#[tokio::test]
async fn no_wake_up_is_lost_in_memory() {
    no_wake_up_is_lost(connect("memory:").await).await;
}

#[tokio::test]
async fn no_wake_up_is_lost_on_redis() {
    let server = RedisServer::start().await;
    no_wake_up_is_lost(connect(server.url()).await).await;
    let free = async || server.keys("lock:{*").await.is_empty();
    eventually(SOON, free).await;
}

#[tokio::test]
async fn what_comes_at_once_goes_together() {
    const CROWD: usize = 512;

    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    // Whatever is called first, the server does not know it.
    server.cmd(&["SCRIPT", "FLUSH"]).await;
    let mut crowd = JoinSet::new();
    for number in 0..CROWD {
        let request = locks.lock(format!("{number}")).ttl(TTL).wait(SOON);
        crowd.spawn(async move { request.acquire().await.unwrap() });
    }
    let guards = within(SOON, crowd.join_all()).await;
    let mut fences: Vec<_> = guards.iter().map(LockGuard::fencing_token).collect();
    fences.sort_unstable();
    fences.dedup();
    assert_eq!(fences.len(), CROWD);
    assert_eq!(server.keys("lock:{*").await.len(), CROWD);
    drop(guards);
    let free = async || server.keys("lock:{*").await.is_empty();
    eventually(SOON, free).await;
    let calls = server.calls("evalsha").await;
    assert!(calls < CROWD as u64, "{calls} calls for {CROWD} locks");
}

#[tokio::test]
async fn a_thread_that_ends_lets_go_of_what_it_keeps() {
    thread_local! {
        static KEPT: RefCell<Option<LockGuard>> = const { RefCell::new(None) };
    }

    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let key = unique("kept");
    let guard = locks.lock(&key).ttl(TTL).acquire().await.unwrap();
    let keeper = thread::spawn(move || KEPT.set(Some(guard)));
    keeper.join().unwrap();
    leaves_nothing(&server, &key, SOON).await;
}

/// Tells on which thread it is woken.
struct Tells(mpsc::UnboundedSender<ThreadId>);

impl Wake for Tells {
    fn wake(self: Arc<Self>) {
        let _ = self.0.send(thread::current().id());
    }
}

/// The one that is dropped may be the last thing that a thread does.
#[tokio::test]
async fn nobody_is_woken_within_a_destructor() {
    let locks = connect("memory:").await;
    for _ in 0..100 {
        let guard = locks.lock("k").ttl(TTL).acquire().await.unwrap();
        let mut waiter = locks.lock("k").ttl(TTL).wait(SOON).acquire();
        let (tells, mut woken) = mpsc::unbounded_channel();
        let waker = Waker::from(Arc::new(Tells(tells)));
        let polled = Pin::new(&mut waiter).poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending());
        drop(guard);
        let by = within(SOON, woken.recv()).await;
        assert_ne!(by, Some(thread::current().id()));
        waiter.await.unwrap().release_confirmed().await.unwrap();
    }
}

/// What no executor should do.
struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic!("a waker fails");
    }
}

/// Waits for a held lock; its waker panics when the outcome is known.
fn wait_and_panic(locks: &LockManager, wait: Duration) -> Acquire {
    let mut waiter = locks.lock("k").ttl(TTL).wait(wait).acquire();
    let waker = Waker::from(Arc::new(Panics));
    let mut context = Context::from_waker(&waker);
    assert!(Pin::new(&mut waiter).poll(&mut context).is_pending());
    waiter
}

async fn has_ended(locks: &LockManager, waiter: &mut Acquire) {
    let late = within(SOON, locks.lock("free").acquire()).await;
    assert!(matches!(late, Err(LockError::ShutDown)), "{late:?}");
    within(SOON, locks.shutdown()).await;
    let mut context = Context::from_waker(Waker::noop());
    let waiter = Pin::new(waiter).poll(&mut context);
    assert!(matches!(waiter, Poll::Ready(_)), "{waiter:?}");
}

#[tokio::test]
async fn a_waker_that_panics_leaves_nobody_waiting() {
    let locks = connect("memory:").await;
    let guard = locks.lock("k").ttl(TTL).acquire().await.unwrap();
    let mut waiter = wait_and_panic(&locks, SOON);
    let other = tokio::spawn(locks.lock("k").ttl(TTL).wait(SOON).acquire());
    let waits = async || matches!(locks.status("k").await, Ok(status) if status.waiting == 2);
    eventually(SOON, waits).await;

    // The panic is on this thread or on the driver's.
    let _ = catch_unwind(AssertUnwindSafe(|| guard.release()));
    let outcome = within(SOON, other).await.unwrap();
    assert!(matches!(outcome, Err(LockError::ShutDown)), "{outcome:?}");
    has_ended(&locks, &mut waiter).await;
}

#[tokio::test]
async fn nor_does_it_on_the_drivers_thread() {
    let locks = connect("memory:").await;
    let guard = locks.lock("k").ttl(TTL).acquire().await.unwrap();
    let mut waiter = wait_and_panic(&locks, Duration::from_millis(50));
    let other = tokio::spawn(locks.lock("k").ttl(TTL).wait(6 * SOON).acquire());
    let outcome = within(SOON, other).await.unwrap();
    assert!(matches!(outcome, Err(LockError::ShutDown)), "{outcome:?}");
    has_ended(&locks, &mut waiter).await;
    drop(guard);
}
