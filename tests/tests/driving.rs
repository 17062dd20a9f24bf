//! Promise: whichever thread does the work of a manager, nobody is left waiting and nothing is left behind.
//!
//! Section: guarantees.md#nothing-is-left-behind
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use std::{
    cell::RefCell,
    future::pending,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    thread::{self, ThreadId},
    time::Duration,
};

use futures_executor::block_on;
use lock_runtime::{Acquire, LockError, LockGuard, LockManager};
use tests::{
    RedisServer, Stop, StoppedManager, connect, eventually, leaves_nothing, poll_once, unique,
    within,
};
use tokio::{
    sync::mpsc,
    task::{JoinSet, unconstrained},
};

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
        // If the budget of this test's task were spent, the runtime would wake it here.
        let poll = pin!(unconstrained(&mut waiter));
        assert!(poll.poll(&mut Context::from_waker(&waker)).is_pending());
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
    let waiter = within(SOON, waiter).await;
    assert!(matches!(waiter, Err(LockError::ShutDown)), "{waiter:?}");
}

#[tokio::test]
async fn a_waker_that_panics_leaves_nobody_waiting() {
    let locks = connect("memory:").await;
    let guard = locks.lock("k").ttl(TTL).acquire().await.unwrap();
    let waiter = wait_and_panic(&locks, SOON);
    let other = tokio::spawn(locks.lock("k").ttl(TTL).wait(SOON).acquire());
    let waiting = async |count| matches!(locks.status("k").await, Ok(it) if it.waiting == count);
    eventually(SOON, async || waiting(2).await).await;

    // The waker is called on this thread or on the driver's.
    guard.release();
    eventually(SOON, async || waiting(1).await).await;
    drop(waiter);
    let guard = within(SOON, other).await.unwrap().unwrap();
    assert!(guard.release_confirmed().await.unwrap());
}

#[tokio::test]
async fn nor_does_it_on_the_drivers_thread() {
    let locks = connect("memory:").await;
    let guard = locks.lock("k").ttl(TTL).acquire().await.unwrap();
    let mut waiter = wait_and_panic(&locks, Duration::from_millis(50));
    let other = tokio::spawn(locks.lock("k").ttl(TTL).wait(6 * SOON).acquire());
    let waiting = async |count| matches!(locks.status("k").await, Ok(it) if it.waiting == count);
    eventually(SOON, async || waiting(2).await).await;
    eventually(SOON, async || waiting(1).await).await;
    drop(guard);
    let guard = within(SOON, other).await.unwrap().unwrap();
    assert!(guard.release_confirmed().await.unwrap());
    let mut context = Context::from_waker(Waker::noop());
    let outcome = Pin::new(&mut waiter).poll(&mut context);
    let refused = matches!(outcome, Poll::Ready(Err(LockError::Contended { .. })));
    assert!(refused, "{outcome:?}");
}

/// As that of a waker of somebody who observes an election.
#[tokio::test]
async fn a_panic_that_ends_the_drivers_thread_leaves_nobody_waiting() {
    let locks = connect("memory:").await;
    let campaign = async || locks.election("e").candidate("c").campaign().await.unwrap();
    let mut leaders = locks.election("e").observe().unwrap();
    let first = campaign().await;
    within(SOON, leaders.next()).await.unwrap();

    let guard = locks.lock("k").ttl(TTL).acquire().await.unwrap();
    let mut waiter = locks.lock("k").ttl(TTL).wait(6 * SOON).acquire();
    assert!(poll_once(&mut waiter).await.is_pending());
    let other = tokio::spawn(locks.lock("k").ttl(TTL).wait(6 * SOON).acquire());
    let mut next = pin!(leaders.next());
    let waker = Waker::from(Arc::new(Panics));
    let next = next.as_mut().poll(&mut Context::from_waker(&waker));
    assert!(next.is_pending());
    first.resign();
    let second = campaign().await;

    let outcome = within(SOON, other).await.unwrap();
    assert!(matches!(outcome, Err(LockError::ShutDown)), "{outcome:?}");
    has_ended(&locks, &mut waiter).await;
    drop((guard, second));
}

/// Three calls that are answered at once, while the manager's thread is stopped by the waker of the first.
struct AnsweredAtOnce<F> {
    first: F,
    acquire: Pin<Box<Acquire>>,
    release: Pin<Box<dyn Future<Output = Result<bool, LockError>>>>,
    /// Lets go of the thread when it is dropped.
    _hold: std::sync::mpsc::Sender<()>,
}

impl<F: Future + Unpin> AnsweredAtOnce<F> {
    async fn new(locks: &LockManager, first: impl FnOnce() -> F) -> Self {
        let guard = locks.lock(unique("held")).acquire().await.unwrap();
        let stopped_before = StoppedManager::new(locks);
        let (waker, stopped, hold) = Stop::waker();
        let mut this = Self {
            first: first(),
            acquire: Box::pin(locks.lock(unique("other")).ttl(TTL).acquire()),
            release: Box::pin(pending()),
            _hold: hold,
        };
        let polled = Pin::new(&mut this.first).poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending());
        assert!(poll_once(&mut this.acquire).await.is_pending());
        this.release = Box::pin(guard.release_confirmed());
        assert!(poll_once(&mut this.release).await.is_pending());
        drop(stopped_before);
        stopped.recv_timeout(SOON).expect("the first is answered");
        this
    }

    /// The first is polled with its answer, and the others have theirs.
    async fn first_delivers_the_others(mut self) -> F::Output {
        assert!(poll_once(&mut self.acquire).await.is_pending());
        assert!(poll_once(&mut self.release).await.is_pending());
        let Poll::Ready(first) = poll_once(&mut self.first).await else {
            panic!("it has been woken");
        };
        let acquired = poll_once(&mut self.acquire).await;
        assert!(matches!(acquired, Poll::Ready(Ok(_))), "{acquired:?}");
        let released = poll_once(&mut self.release).await;
        assert!(matches!(released, Poll::Ready(Ok(true))), "{released:?}");
        first
    }
}

#[tokio::test]
async fn a_caller_that_gets_its_lock_delivers_the_answers_of_others() {
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let first = || Box::pin(locks.lock(unique("first")).ttl(TTL).acquire());
    let answered = AnsweredAtOnce::new(&locks, first).await;
    drop(answered.first_delivers_the_others().await.unwrap());
}

#[tokio::test]
async fn a_caller_whose_release_is_confirmed_delivers_the_answers_of_others() {
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let guard = locks
        .lock(unique("first"))
        .ttl(TTL)
        .acquire()
        .await
        .unwrap();
    let first = || Box::pin(guard.release_confirmed());
    let answered = AnsweredAtOnce::new(&locks, first).await;
    assert!(answered.first_delivers_the_others().await.unwrap());
}
