//! Promise: locks on PostgreSQL outlive what happens to its servers, connections and clients, and nobody holds one beside
//! another.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use std::time::Duration;

use lock_runtime::{Acquire, LockConfig, LockError, LockGuard, LockManager};
use tests::{
    LONG, PostgresServer, TIME_LIMIT, connect, eventually, poll_once, queued, release, within,
};

mod backups;
mod clients;
mod connections;
mod crashes;
mod cut;
mod deleted_rows;
mod fencing;
mod full_disks;
mod hand_overs;
mod locked_tables;
mod logins;
mod pooler;
mod refused;
mod restarts;
mod settings;
mod standbys;
mod used_up;
mod wraparound;

/// The calls that a client sent before it stopped are carried out within this time. One of them may take a grant for its
/// full ttl, and nothing announces that it was carried out.
const CARRIED_OUT: Duration = Duration::from_secs(1);

/// The server of a test; `None`, with a notice, where it cannot be had.
async fn server() -> Option<PostgresServer> {
    PostgresServer::start("tests/postgres").await
}

/// A manager that waits for a server, and is given time on a busy machine.
async fn manager(url: &str) -> LockManager {
    let config = LockConfig::new(url).unwrap().connect_timeout(TIME_LIMIT);
    connect(config.unavailable_wait_forever()).await
}

/// Waits for a lock of this name.
async fn waiter(locks: &LockManager) -> Acquire {
    queued(locks, locks.lock("key").ttl(LONG).wait_forever()).await
}

/// Returns when so many wait for the lock.
async fn waiting(locks: &LockManager, count: usize) {
    let waits = async || {
        locks
            .status("key")
            .await
            .is_ok_and(|it| it.waiting == count)
    };
    eventually(TIME_LIMIT, waits).await;
}

/// The waiters are granted the lock in this order, each when the one before it has released it.
async fn are_served_in_order(guard: LockGuard, waiters: Vec<Acquire>) {
    let mut fence = guard.fencing_token();
    release(guard).await;
    let mut waiters = waiters.into_iter();
    while let Some(next) = waiters.next() {
        let guard = within(TIME_LIMIT, next).await.unwrap();
        for later in waiters.as_mut_slice() {
            assert!(poll_once(later).await.is_pending(), "served out of order");
        }
        assert!(guard.fencing_token() > fence);
        fence = guard.fencing_token();
        release(guard).await;
    }
}

/// A try finds that nothing is granted in the quarantine.
async fn is_quarantined(locks: &LockManager) {
    let tried = locks.lock("key").try_once().acquire();
    match within(TIME_LIMIT, tried).await {
        Err(error @ LockError::Unavailable { .. }) => {
            let text = error.to_string();
            assert!(text.contains("no lock is granted"), "{text}");
        }
        other => panic!("{other:?}"),
    }
}

/// A manager cannot connect to this URL; what it says of the reason.
async fn refused(url: &str) -> LockError {
    let config = LockConfig::new(url).unwrap();
    let connected = within(TIME_LIMIT, LockManager::connect(config)).await;
    connected.expect_err("it must not connect")
}
