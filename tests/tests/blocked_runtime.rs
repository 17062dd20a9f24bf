//! A lock is renewed while its body blocks every thread of its runtime for longer than the lease.
//!
//! Section: guarantees.md#no-poll-of-the-body-starts-after-its-deadline

use std::{
    sync::{
        Arc, Barrier,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use lock_runtime::{LockError, LockManager};
use tests::{RedisServer, connect, unique, within};
use tokio::{
    runtime::{Builder, Runtime},
    sync::oneshot,
};

const TTL: Duration = Duration::from_millis(500);
const SOON: Duration = Duration::from_secs(10);

/// Blocks every thread of the runtime, `threads` with the one that calls this, at the same time.
fn block(runtime: &Runtime, threads: usize, time: Duration) {
    // Would not return if two of them had to share a thread.
    let together = Arc::new(Barrier::new(threads));
    for _ in 1..threads {
        let together = Arc::clone(&together);
        runtime.spawn(async move {
            together.wait();
            thread::sleep(time);
        });
    }
    together.wait();
    thread::sleep(time);
}

/// Holds a lock with a body that blocks `threads` of the runtime, while another manager tries to take it.
async fn stays_locked(runtime: Runtime, threads: usize) {
    let server = RedisServer::start().await;
    let rival = connect(server.url()).await;
    let key = unique("blocked");

    let (inside, entered) = oneshot::channel();
    let leaves = Arc::new(AtomicBool::new(false));
    let body = thread::spawn({
        let (leaves, url, key) = (Arc::clone(&leaves), server.url(), key.clone());
        move || {
            // Made in the runtime that is blocked, as programs do.
            let locks = runtime
                .block_on(LockManager::connect(url))
                .expect("connected");
            let request = locks.lock(&key).ttl(TTL);
            runtime.block_on(request.run(async |guard| {
                inside.send(()).expect("the test waits");
                block(&runtime, threads, 3 * TTL);
                let held = guard.is_held();
                // It is looked at the clock here.
                tokio::task::yield_now().await;
                block(&runtime, threads, TTL);
                leaves.store(true, Ordering::SeqCst);
                held
            }))
        }
    });

    within(SOON, entered).await.expect("the body starts");
    let mut tries = 0;
    loop {
        let outcome = rival.lock(&key).wait(Duration::ZERO).acquire().await;
        if leaves.load(Ordering::SeqCst) {
            break;
        }
        let error = outcome.expect_err("the lock is held");
        assert!(matches!(error, LockError::Contended { .. }), "{error}");
        tries += 1;
        tokio::time::sleep(TTL / 50).await;
    }
    assert!(tries > 10, "only {tries} tries in four times the ttl");

    let outcome = tokio::task::spawn_blocking(|| body.join()).await;
    let outcome = outcome.expect("joined").expect("the body does not panic");
    assert!(outcome.expect("the lock was not lost"), "held throughout");
    let next = rival.lock(&key).acquire();
    let next = within(SOON, next).await;
    next.expect("the lock is free again").release();
}

#[tokio::test]
async fn a_current_thread_runtime() {
    let runtime = Builder::new_current_thread().build();
    stays_locked(runtime.expect("a runtime"), 1).await;
}

#[tokio::test]
async fn a_multi_thread_runtime() {
    // The body has the thread of `block_on`, which is none of the workers.
    let runtime = Builder::new_multi_thread().worker_threads(2).build();
    stays_locked(runtime.expect("a runtime"), 3).await;
}
