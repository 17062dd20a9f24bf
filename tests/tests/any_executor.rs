//! Promise: nothing on the caller's side needs tokio, and a manager outlives the runtime in which it was made.
//!
//! Section: guarantees.md#nothing-is-left-behind
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use std::{
    future::pending,
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use futures_executor::block_on;
use lock_runtime::{LockError, LockManager, distributed_lock};
use tests::{RedisServer, unique};
use tokio::{runtime::Runtime, sync::oneshot};

const SECOND: Duration = Duration::from_secs(1);

/// A server; whoever starts it needs tokio, its clients do not.
fn server() -> RedisServer {
    Runtime::new().unwrap().block_on(RedisServer::start())
}

/// The output of a future that is polled outside every runtime; fails when that takes too long.
fn outside<F>(future: F) -> F::Output
where
    F: Future<Output: Send> + Send + 'static,
{
    let (sender, output) = mpsc::channel();
    thread::spawn(move || {
        let no_runtime = tokio::runtime::Handle::try_current();
        assert!(no_runtime.is_err());
        let _ = sender.send(block_on(future));
    });
    output.recv_timeout(20 * SECOND).expect("done in time")
}

/// Ready after this time, by a thread that wakes whoever waits.
fn after(time: Duration) -> impl Future<Output = ()> + Send {
    let (done, woken) = oneshot::channel();
    thread::spawn(move || {
        thread::sleep(time);
        let _ = done.send(());
    });
    async move { woken.await.unwrap() }
}

/// Everything that a lock does, between two managers at `url`.
async fn everything(url: String) {
    let locks = LockManager::connect(&url).await.unwrap();
    let others = LockManager::connect(&url).await.unwrap();

    // Renewed while its body runs.
    let guard = locks.lock("key").ttl(SECOND).acquire().await.unwrap();
    let work = async {
        after(2 * SECOND).await;
        "done"
    };
    assert_eq!(guard.hold(work).await.unwrap(), "done");
    let contended = others.lock("key").wait(SECOND / 10).acquire().await;
    assert!(matches!(contended, Err(LockError::Contended { .. })));

    // Handed over, whichever thread it is on.
    let (sender, receiver) = mpsc::channel();
    let waiting = others.lock("key").ttl(SECOND).renew(false).acquire();
    thread::spawn(move || sender.send(block_on(waiting)));
    let waited = async {
        after(SECOND / 10).await;
        guard.release_confirmed().await.unwrap()
    };
    assert!(waited.await);
    let next = receiver.recv_timeout(20 * SECOND).unwrap().unwrap();

    // Woken at the deadline, without a timer of the executor's.
    let start = Instant::now();
    let lost = next.hold(pending::<()>()).await.unwrap_err();
    assert!(matches!(lost, LockError::Lost { .. }));
    assert!(start.elapsed() < 3 * SECOND);
    next.lost().await;

    // Dropped where there is no runtime.
    drop(locks.lock("key").acquire().await.unwrap());
    let guard = others.lock("key").acquire().await.unwrap();
    guard.release();
    others.shutdown().await;
}

#[test]
fn locks_in_memory_work_without_tokio() {
    outside(everything(format!("memory:{}", unique("outside"))));
}

#[test]
fn locks_on_redis_work_without_tokio() {
    let server = server();
    outside(everything(server.url()));
    let keys = server.keys("lock:{*");
    assert_eq!(Runtime::new().unwrap().block_on(keys), [""; 0]);
}

#[distributed_lock(key = "shelf:{shelf}", ttl = "2s", wait = "0s", manager = locks)]
async fn tidy(locks: &LockManager, shelf: u32) -> Result<u32, LockError> {
    after(SECOND / 10).await;
    Ok(shelf)
}

#[test]
fn an_annotated_function_works_without_tokio() {
    let server = server();
    let url = server.url();
    outside(async move {
        let locks = LockManager::connect(&url).await.unwrap();
        assert_eq!(tidy(&locks, 7).await.unwrap(), 7);
        let _guard = locks.lock("shelf:7").acquire().await.unwrap();
        assert!(tidy(&locks, 7).await.is_err());
    });
}

#[test]
fn a_manager_and_its_guards_outlive_the_runtime_they_were_made_in() {
    let server = server();
    let first = Runtime::new().unwrap();
    let (locks, guard) = first.block_on(async {
        let locks = LockManager::connect(server.url()).await.unwrap();
        let guard = locks.lock("key").ttl(SECOND).acquire().await.unwrap();
        (locks, guard)
    });
    drop(first);

    let second = Runtime::new().unwrap();
    second.block_on(async {
        // Renewed, with the runtime of its beginnings gone.
        let work = guard.hold(tokio::time::sleep(2 * SECOND));
        work.await.unwrap();
        let waiter = tokio::spawn(locks.lock("key").acquire());
        assert!(guard.release_confirmed().await.unwrap());
        let next = waiter.await.unwrap().unwrap();
        assert!(next.release_confirmed().await.unwrap());
    });
    let (request, other) = (locks.lock("key"), locks.lock("other"));
    // A waiter whose runtime ends has given up; a guard that is dropped with one is released.
    second.spawn(async move {
        let _guard = request.acquire().await;
        pending::<()>().await;
    });
    drop(second);

    outside(async move {
        other.acquire().await.unwrap().release();
        let guard = locks.lock("key").wait(5 * SECOND).acquire().await.unwrap();
        assert!(guard.release_confirmed().await.unwrap());
    });
}
