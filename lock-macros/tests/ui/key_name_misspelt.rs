//! A name that is no argument.
#![allow(dead_code, unused_variables)]

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "stock:{shop}:{itm:04}")]
async fn buy(shop: u32, item: u32) -> Result<u32, LockError> {
    Ok(1)
}

fn main() {}
