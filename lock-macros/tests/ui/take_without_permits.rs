//! A share of permits that the lock does not have.
#![allow(dead_code, unused_variables)]

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "stock:{id}", take = 2)]
async fn buy(id: u32) -> Result<u32, LockError> {
    Ok(1)
}

fn main() {}
