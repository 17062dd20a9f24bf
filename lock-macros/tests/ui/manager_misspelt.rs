//! A manager that there is not.
#![allow(dead_code, unused_variables)]

use lock_runtime::{LockError, LockManager, distributed_lock};

#[distributed_lock(key = "stock:{id}", manager = lock)]
async fn buy(locks: &LockManager, id: u32) -> Result<u32, LockError> {
    Ok(1)
}

fn main() {}
