//! Two values side by side.
#![allow(dead_code, unused_variables)]

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "{shop}-{id}")]
async fn buy(shop: u32, id: u32) -> Result<u32, LockError> {
    Ok(1)
}

fn main() {}
