//! A number that is known too late.
#![allow(dead_code, unused_variables)]

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "stock:{id}", permits = count)]
async fn buy(id: u32, count: u32) -> Result<u32, LockError> {
    Ok(1)
}

fn main() {}
