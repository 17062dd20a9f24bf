//! A body that runs to its end, of another type.
#![allow(dead_code, unused_variables)]

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "stock:{id}", on_lost = "notify")]
async fn buy(id: u32) -> Result<u32, LockError> {
    Ok(id.to_string())
}

fn main() {}
