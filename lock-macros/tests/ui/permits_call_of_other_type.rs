//! A function that returns another number.
#![allow(dead_code, unused_variables)]

use lock_runtime::{LockError, distributed_lock};

fn limit() -> usize {
    4
}

#[distributed_lock(key = "stock:{id}", permits = limit())]
async fn buy(id: u32) -> Result<u32, LockError> {
    Ok(1)
}

fn main() {}
