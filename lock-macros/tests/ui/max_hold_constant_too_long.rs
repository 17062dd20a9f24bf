//! One of two constants is above the maximum.
#![allow(dead_code, unused_variables)]

use lock_runtime::{LockError, distributed_lock};
use std::time::Duration;

const TTL: Duration = Duration::from_secs(5);

mod limits {
    pub(crate) const HOLD: std::time::Duration = std::time::Duration::from_secs(90_000);
}

#[distributed_lock(key = "stock:{id}", ttl = TTL, max_hold = limits::HOLD)]
async fn buy(id: u32) -> Result<u32, LockError> {
    Ok(1)
}

fn main() {}
