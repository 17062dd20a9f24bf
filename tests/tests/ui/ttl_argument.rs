//! A duration that is known too late.
#![allow(dead_code, unused_variables)]

use lock_runtime::{LockError, distributed_lock};
use std::time::Duration;

#[distributed_lock(key = "stock:{id}", ttl = ttl)]
async fn buy(id: u32, ttl: Duration) -> Result<u32, LockError> {
    Ok(1)
}

fn main() {}
