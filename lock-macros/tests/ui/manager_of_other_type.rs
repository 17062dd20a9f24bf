//! A manager that is none.
#![allow(dead_code, unused_variables)]

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "stock:{id}", manager = redis)]
async fn buy(redis: &str, id: u32) -> Result<u32, LockError> {
    Ok(1)
}

fn main() {}
