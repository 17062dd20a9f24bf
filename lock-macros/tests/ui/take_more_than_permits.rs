//! More permits than there are.
#![allow(dead_code, unused_variables)]

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "stock:{id}", permits = 4, take = 5)]
async fn buy(id: u32) -> Result<u32, LockError> {
    Ok(1)
}

fn main() {}
