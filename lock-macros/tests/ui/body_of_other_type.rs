//! A body that returns something else.
#![allow(dead_code, unused_variables)]

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "stock:{id}")]
async fn buy(id: u32) -> Result<u32, LockError> {
    id
}

fn main() {}
