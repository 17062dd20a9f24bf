//! An error that is not made of a `LockError`.
#![allow(dead_code, unused_variables)]

use lock_runtime::distributed_lock;

#[distributed_lock(key = "stock:{id}")]
async fn buy(id: u32) -> Result<u32, String> {
    Ok(id)
}

fn main() {}
