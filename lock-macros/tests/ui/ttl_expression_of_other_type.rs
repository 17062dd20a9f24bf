//! An argument that is a number.
#![allow(dead_code, unused_variables)]

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "stock:{id}", ttl = seconds)]
async fn buy(id: u32, seconds: u64) -> Result<u32, LockError> {
    Ok(1)
}

fn main() {}
