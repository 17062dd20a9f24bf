//! Promise: locks on etcd outlive what happens to its members and connections, and nobody holds one beside another.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use std::{cell::Cell, time::Duration};

use lock_runtime::{LockConfig, LockGuard, LockManager};
use tests::{TIME_LIMIT, connect, eventually};

mod access;
mod batches;
mod cut_off;
mod faults;
mod leader_stopped;
mod learners;
mod limits;
mod load;
mod neighbours;
mod slots;
mod stopped;
mod watches;

/// The shortest lease of etcd.
const TTL: Duration = Duration::from_secs(2);

/// A manager that waits for an election, and is given time on a busy machine.
async fn patient(url: &str) -> LockManager {
    let config = LockConfig::new(url).unwrap().connect_timeout(TIME_LIMIT);
    connect(config.unavailable_wait_forever()).await
}

/// Returns when the lease was renewed.
pub(crate) async fn is_renewed(guard: &LockGuard) {
    let last = Cell::new(guard.remaining());
    eventually(TIME_LIMIT, async || {
        let left = guard.remaining();
        left > last.replace(left)
    })
    .await;
}
