//! A mistake in the attribute, and one in the call: no third.
#![allow(dead_code, unused_variables)]

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "stock:{id}", ttl = 10)]
async fn buy(id: u32) -> Result<u32, LockError> {
    let twice: u32 = id.wrapping_mul(2);
    Ok(twice)
}

async fn call() -> Result<u32, LockError> {
    let bought: u32 = buy(1).await?;
    buy("two").await
}

fn main() {}
