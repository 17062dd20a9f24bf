//! Promise: locks can be taken without async code and without a runtime.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use std::thread;
use std::time::Duration;

use lock_runtime::{LockError, LockManager};
use tests::{LONG, RedisServer};

/// Starts a server with a runtime that is gone when it returns.
fn server() -> RedisServer {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _context = runtime.enter();
    runtime.block_on(RedisServer::start())
}

fn takes_turns(locks: &LockManager) {
    let guard = locks.lock("key").ttl(LONG).acquire_blocking().unwrap();
    assert!(guard.is_held() && guard.fencing_token().get() > 0);
    let busy = locks.lock("key").wait(Duration::from_millis(100));
    let busy = busy.acquire_blocking();
    assert!(matches!(busy, Err(LockError::Contended { .. })), "{busy:?}");

    let (first, locks) = (guard.fencing_token(), locks.clone());
    let waiter = thread::spawn(move || locks.lock("key").wait_forever().acquire_blocking());
    guard.release();
    let next = waiter.join().unwrap().unwrap();
    assert!(next.fencing_token() > first && next.is_held());
}

// Section: blocking.md#what-is-different
#[test]
fn a_thread_without_a_runtime_takes_locks() {
    takes_turns(&LockManager::connect_blocking("memory:").unwrap());
    let server = server();
    let locks = LockManager::connect_blocking(server.url()).unwrap();
    takes_turns(&locks);
}

// Section: blocking.md#what-is-different
#[test]
fn a_lease_is_renewed_while_the_thread_is_busy() {
    let server = server();
    let locks = LockManager::connect_blocking(server.url()).unwrap();
    let ttl = Duration::from_millis(300);
    let guard = locks.lock("key").ttl(ttl).acquire_blocking().unwrap();
    thread::sleep(3 * ttl);
    assert!(guard.is_held());
    let busy = locks.lock("key").try_once().acquire_blocking();
    assert!(matches!(busy, Err(LockError::Contended { .. })), "{busy:?}");
}

#[test]
fn a_configuration_that_makes_no_sense_is_refused() {
    let refused = LockManager::connect_blocking("nosuch://here");
    assert!(
        matches!(refused, Err(LockError::InvalidOptions { .. })),
        "{refused:?}"
    );
}
