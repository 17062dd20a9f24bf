//! A call for a constant.
#![allow(dead_code, unused_variables)]

use lock_runtime::{LockError, distributed_lock};
use std::time::Duration;

#[distributed_lock(key = "stock:{id}", ttl = Duration::from_secs(1))]
async fn buy(id: u32) -> Result<u32, LockError> {
    Ok(1)
}

fn main() {}
