//! A constant that lets nobody wait.
#![allow(dead_code, unused_variables)]

use lock_runtime::{LockError, distributed_lock};

const WAITERS: u32 = 0;

#[distributed_lock(key = "stock:{id}", max_waiters = WAITERS)]
async fn buy(id: u32) -> Result<u32, LockError> {
    Ok(1)
}

fn main() {}
