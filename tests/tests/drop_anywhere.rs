//! A guard may be dropped anywhere, and what is released stays released.
//!
//! Section: guarantees.md#nothing-is-left-behind

use std::{
    cell::RefCell,
    panic,
    pin::Pin,
    sync::{Arc, Mutex, OnceLock},
    task::{Context, Wake, Waker},
    thread,
    time::{Duration, Instant},
};

use lock_runtime::{Acquire, LockError, LockGuard, LockManager};
use tests::{
    Proxy, Pulse, RedisServer, connect, eventually, leaves_nothing, queued, release, take, unique,
    within,
};
use tokio::{
    runtime::{Builder, Runtime},
    task::JoinSet,
    time::{sleep, timeout},
};

/// Far longer than any test: what is free in time has not just expired.
const TTL: Duration = Duration::from_secs(60);
/// Short enough to see renewals.
const SHORT: Duration = Duration::from_millis(300);
const SOON: Duration = Duration::from_secs(5);

/// A lock and a runtime to look at it, which no test drops its guard on.
struct Scene {
    runtime: Runtime,
    server: RedisServer,
    locks: LockManager,
    key: String,
}

impl Scene {
    fn new() -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let server = runtime.block_on(RedisServer::start());
        let locks = runtime.block_on(connect(server.url()));
        Self {
            runtime,
            server,
            locks,
            key: unique("drop"),
        }
    }

    fn take(&self) -> LockGuard {
        self.runtime.block_on(take(&self.locks, &self.key, TTL))
    }

    fn assert_free(&self) {
        let free = leaves_nothing(&self.server, &self.key, SOON);
        self.runtime.block_on(free);
    }
}

fn current_thread() -> Runtime {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime")
}

#[test]
fn outside_every_runtime() {
    let scene = Scene::new();
    drop(scene.take());
    scene.assert_free();

    let guard = scene.take();
    let elsewhere = thread::spawn(move || drop(guard));
    elsewhere.join().expect("no panic");
    scene.assert_free();

    scene.take().release();
    scene.assert_free();
    drop(scene.take().release_confirmed());
    scene.assert_free();
    let mut release = Box::pin(scene.take().release_confirmed());
    let mut context = Context::from_waker(Waker::noop());
    // It may be answered already.
    let _ = release.as_mut().poll(&mut context);
    drop(release);
    scene.assert_free();
}

#[test]
fn on_a_current_thread_runtime() {
    let scene = Scene::new();
    current_thread().block_on(async {
        let guard = scene.locks.lock(&scene.key).ttl(TTL).acquire().await;
        drop(guard.expect("the lock is free"));
    });
    scene.assert_free();

    let guard = scene.take();
    let runtime = current_thread();
    let task = runtime.spawn(async move { drop(guard) });
    runtime.block_on(task).expect("no panic");
    scene.assert_free();
}

#[test]
fn when_its_runtime_ends_and_after() {
    let scene = Scene::new();
    for runtime in [current_thread(), Runtime::new().expect("a runtime")] {
        let request = scene.locks.lock(&scene.key).ttl(TTL);
        let guard = runtime.block_on(request.acquire());
        drop(runtime);
        drop(guard.expect("the lock is free"));
        scene.assert_free();
    }
    for runtime in [current_thread(), Runtime::new().expect("a runtime")] {
        // The guard is in a task that ends with its runtime.
        let request = scene.locks.lock(&scene.key).ttl(TTL);
        let (inside, entered) = tokio::sync::oneshot::channel();
        runtime.spawn(request.run(async |_| {
            inside.send(()).expect("the test waits");
            std::future::pending::<()>().await;
        }));
        runtime.block_on(entered).expect("the body starts");
        drop(runtime);
        scene.assert_free();
    }
}

#[test]
fn a_manager_serves_a_runtime_after_that_of_its_connect_is_gone() {
    let mut scene = Scene::new();
    let guard = scene.take();
    scene.runtime = Runtime::new().expect("a runtime");
    assert!(guard.is_held());
    drop(guard);
    scene.assert_free();
    scene.take().release();
    scene.assert_free();
}

#[test]
fn while_unwinding() {
    let scene = Scene::new();
    let panicking = async || {
        let request = scene.locks.lock(&scene.key).ttl(TTL);
        request.run(async |_| panic!("the body fails")).await
    };
    for runtime in [current_thread(), Runtime::new().expect("a runtime")] {
        let body = panic::AssertUnwindSafe(|| runtime.block_on(panicking()));
        let outcome: Result<Result<(), LockError>, _> = panic::catch_unwind(body);
        assert!(outcome.is_err(), "the panic goes on");
        scene.assert_free();
    }

    let guard = scene.take();
    let unwinding = thread::spawn(move || {
        let _guard = guard;
        panic!("the thread fails");
    });
    assert!(unwinding.join().is_err());
    scene.assert_free();
}

#[test]
fn inside_the_body_of_another() {
    let scene = Scene::new();
    let (outer, inner) = (scene.take(), unique("inner"));
    let body = outer.hold(async {
        let guard = scene.locks.lock(&inner).ttl(TTL).acquire().await;
        drop(guard.expect("the lock is free"));
        let free = async || scene.server.traces(&inner).await.is_empty();
        eventually(SOON, free).await;
        outer.is_held()
    });
    let held = scene.runtime.block_on(body);
    assert!(held.expect("not lost"), "the wrong lock was released");
    drop(outer);
    scene.assert_free();
}

#[tokio::test]
async fn a_body_that_is_dropped() {
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let key = unique("body");
    let free = async || {
        let free = async || server.traces(&key).await.is_empty();
        eventually(SOON, free).await;
    };
    let pulse = Pulse::default();
    let locked = || {
        let request = locks.lock(&key).ttl(TTL);
        let pulse = pulse.clone();
        request.run(async move |guard| pulse.beat(guard).await)
    };

    let outcome = timeout(Duration::from_millis(100), locked()).await;
    assert!(outcome.is_err(), "the body does not end");
    free().await;

    let beats = pulse.polls().count;
    tokio::select! {
        _ = locked() => unreachable!("the body does not end"),
        () = pulse.reaches(beats + 3) => {}
    }
    free().await;

    let beats = pulse.polls().count;
    let task = tokio::spawn(locked());
    within(SOON, pulse.reaches(beats + 3)).await;
    task.abort();
    assert!(task.await.expect_err("aborted").is_cancelled());
    free().await;

    let beats = pulse.polls().count;
    sleep(Duration::from_millis(20)).await;
    assert_eq!(pulse.polls().count, beats, "a dropped body was polled");
}

// Section: guarantees.md#one-holder-at-a-time
#[tokio::test]
async fn no_renewal_outlives_the_release() {
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let mut bodies = JoinSet::new();
    for millis in 0..150 {
        // Renewals are due between 90 and 110 ms, and again as much later.
        let guard = locks.lock(unique("renewed")).ttl(SHORT).acquire().await;
        let guard = guard.expect("the lock is free");
        bodies.spawn(async move {
            sleep(Duration::from_millis(60 + millis)).await;
            guard.release_confirmed().await
        });
    }
    for released in bodies.join_all().await {
        assert!(released.expect("an answer"), "it was ours until then");
    }
    let calls = server.calls("evalsha").await;
    assert_eq!(server.keys("lock:{*").await, [""; 0]);
    sleep(SHORT).await;
    assert_eq!(server.calls("evalsha").await, calls, "renewals go on");
    assert_eq!(server.keys("lock:{*").await, [""; 0]);
}

// Section: guarantees.md#one-holder-at-a-time
#[tokio::test]
async fn no_renewal_makes_a_key_again() {
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let key = unique("gone");
    for expired in [false, true] {
        let guard = locks.lock(&key).ttl(SHORT).acquire().await;
        let guard = guard.expect("the lock is free");
        if expired {
            // What is sent meanwhile is done when the key has expired.
            server.stop();
            within(SOON, guard.lost()).await;
            sleep(SHORT).await;
            server.resume();
        } else {
            server.cmd(&["DEL", &RedisServer::owner_key(&key)]).await;
            within(SOON, guard.lost()).await;
        }
        // Comes after everything that was sent.
        let after = locks.lock(unique("after")).wait(SOON).acquire();
        let after = within(2 * SOON, after).await.expect("the server is there");
        assert_eq!(server.owner(&key).await, None);
        drop((guard, after));
    }
}

#[tokio::test]
async fn the_last_handle_waits_for_the_releases() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr());
    let locks = connect(proxy.url()).await;
    let other = locks.clone();
    let guard = take(&locks, "key", TTL).await;
    proxy.requests().delay(SHORT / 3);
    drop(locks);
    drop(guard);
    drop(other);
    assert_eq!(server.keys("lock:{*").await, [""; 0]);
}

#[tokio::test]
async fn an_acquisition_that_is_the_last_handle_waits_until_it_has_left_the_queue() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr());
    let (holder, locks) = (connect(server.url()).await, connect(proxy.url()).await);
    let guard = take(&holder, "key", TTL).await;
    let waiter = queued(&locks, locks.lock("key").wait_forever()).await;
    server.queued("key", 1).await;
    proxy.requests().delay(SHORT / 3);
    drop(locks);
    drop(waiter);
    assert_eq!(server.waiting("key").await, 0);
    release(guard).await;
}

#[tokio::test]
async fn the_last_handle_waits_for_a_second_at_the_most() {
    const SECOND: Duration = Duration::from_secs(1);
    let server = RedisServer::start().await;
    let (idle, locks) = (connect(server.url()).await, connect(server.url()).await);
    let guard = take(&locks, "key", TTL).await;
    server.stop();
    let start = Instant::now();
    drop(idle);
    let took = start.elapsed();
    assert!(took < SECOND / 2, "there was nothing to wait for: {took:?}");
    drop(guard);
    let start = Instant::now();
    drop(locks);
    let took = start.elapsed();
    assert!((SECOND..2 * SECOND).contains(&took), "{took:?}");
}

/// Lets go of an acquisition and its manager when it is woken, and notes how long that took.
struct Keeps(Mutex<Option<Acquire>>, OnceLock<Duration>);

impl Wake for Keeps {
    fn wake(self: Arc<Self>) {
        let start = Instant::now();
        drop(self.0.lock().expect("no panic").take());
        self.1.get_or_init(|| start.elapsed());
    }
}

#[tokio::test]
async fn the_last_handle_may_be_dropped_while_the_driver_works() {
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let guard = take(&locks, "key", TTL).await;
    let mut acquire = locks.lock("key").wait(SHORT).acquire();
    drop(locks);
    let keeps = Arc::new(Keeps(Mutex::default(), OnceLock::new()));
    let waker = Waker::from(Arc::clone(&keeps));
    let polled = Pin::new(&mut acquire).poll(&mut Context::from_waker(&waker));
    assert!(polled.is_pending());
    *keeps.0.lock().expect("no panic") = Some(acquire);
    // The driver wakes it, and has to leave the queue.
    eventually(SOON, async || keeps.1.get().is_some()).await;
    let took = keeps.1.get().expect("it was woken");
    assert!(*took < SHORT, "the driver waited for itself: {took:?}");
    let released = within(SOON, guard.release_confirmed()).await;
    assert!(released.expect("an answer"));
}

/// Looks for a lock in the destructor of a variable of a thread: ours may be gone by then.
struct LooksAtTheEnd {
    guard: LockGuard,
    ended: std::sync::mpsc::Sender<()>,
}

impl Drop for LooksAtTheEnd {
    fn drop(&mut self) {
        assert!(lock_runtime::current().is_none());
        assert!(self.guard.is_held());
        let _ = self.ended.send(());
    }
}

thread_local! {
    static BEFORE: RefCell<Option<LooksAtTheEnd>> = const { RefCell::new(None) };
    static BEHIND: RefCell<Option<LooksAtTheEnd>> = const { RefCell::new(None) };
}

#[test]
fn a_thread_that_ends_may_look_for_its_locks() {
    let scene = Scene::new();
    let (ended, ends) = std::sync::mpsc::channel();
    let looks = |key: &str| LooksAtTheEnd {
        guard: scene.runtime.block_on(take(&scene.locks, key, TTL)),
        ended: ended.clone(),
    };
    let (before, behind) = (looks("before"), looks("behind"));
    thread::spawn(move || {
        BEFORE.set(Some(before));
        assert!(lock_runtime::current().is_none());
        BEHIND.set(Some(behind));
    })
    .join()
    .unwrap();
    drop(ended);
    assert_eq!(ends.iter().count(), 2);
}
