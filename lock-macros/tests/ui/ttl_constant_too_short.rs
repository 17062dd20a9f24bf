//! A constant below the minimum.
#![allow(dead_code, unused_variables)]

use lock_runtime::{LockError, distributed_lock};
use std::time::Duration;

const TTL: Duration = Duration::from_millis(99);

#[distributed_lock(key = "stock:{id}", ttl = TTL)]
async fn buy(id: u32) -> Result<u32, LockError> {
    Ok(1)
}

fn main() {}
