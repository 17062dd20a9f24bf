//! Promises of locks on ZooKeeper: what its nodes are, and what becomes of locks when connections, sessions, processes
//! and servers fail.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use std::time::Duration;

use lock_runtime::{LockConfig, LockManager};
use tests::{TIME_LIMIT, ZooKeeperServer, connect};

mod batches;
mod encryption;
mod ensemble;
mod faults;
mod layout;
mod leader_cut_off;
mod long_queues;
mod packets;
mod replaced;
mod rights;
mod sessions;
mod traffic;

/// A manager with a session of this time on these servers, which is given time to connect on a busy machine.
async fn manager(url: &str, session: Duration) -> LockManager {
    let config = LockConfig::new(url).unwrap().connect_timeout(TIME_LIMIT);
    connect(config.ttl(session)).await
}

/// The server of a test; `None`, with a notice, where it cannot be had.
async fn server() -> Option<ZooKeeperServer> {
    ZooKeeperServer::start("tests/zookeeper").await
}
