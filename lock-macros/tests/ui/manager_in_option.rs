//! A manager that may be none.
#![allow(dead_code, unused_variables)]

use lock_runtime::{LockError, LockManager, distributed_lock};

#[distributed_lock(key = "stock:{id}", manager = locks)]
async fn buy(locks: Option<&LockManager>, id: u32) -> Result<u32, LockError> {
    Ok(1)
}

fn main() {}
