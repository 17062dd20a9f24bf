//! Locks on Redis Cluster while its slots move, its masters fail, and its nodes come and go.

mod addresses;
mod declared;
mod encrypted;
mod failover;
mod health;
mod nodes;
mod pushes;
mod quarantine;
mod replicas;
mod slots;

use std::time::{Duration, Instant};

use lock_runtime::LockGuard;
use tests::{TIME_LIMIT, eventually};

/// Short enough that renewals are seen, long enough for a busy machine.
const TTL: Duration = Duration::from_secs(2);

/// A renewal from now on has succeeded.
async fn renewed(guard: &LockGuard) {
    let end = || Instant::now() + guard.remaining();
    let before = end();
    // Two readings of the clock lie closer together than that.
    eventually(TIME_LIMIT, async || end() > before + TTL / 10).await;
    assert!(guard.is_held());
}
