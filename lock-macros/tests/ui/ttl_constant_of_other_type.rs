//! A constant that is a number.
#![allow(dead_code, unused_variables)]

use lock_runtime::{LockError, distributed_lock};

const TTL_SECONDS: u64 = 10;

#[distributed_lock(key = "stock:{id}", ttl = TTL_SECONDS)]
async fn buy(id: u32) -> Result<u32, LockError> {
    Ok(1)
}

fn main() {}
