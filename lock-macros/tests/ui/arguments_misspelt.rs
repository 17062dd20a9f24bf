//! Names that are nearly right.
#![allow(dead_code, unused_variables)]

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "stock:{id}", permit = 4, moed = "read", renetrant = true, on_loss = "notify", min_hodl = "1m", maxhold = "1h")]
async fn buy(id: u32) -> Result<u32, LockError> {
    Ok(1)
}

fn main() {}
