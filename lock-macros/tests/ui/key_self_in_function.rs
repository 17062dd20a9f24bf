//! A receiver that there is not.
#![allow(dead_code, unused_variables)]

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "stock:{self.shop}")]
async fn buy(id: u32) -> Result<u32, LockError> {
    Ok(1)
}

fn main() {}
