//! A `?` whose error the function cannot return.
#![allow(dead_code, unused_variables)]

use lock_runtime::{LockError, distributed_lock};

enum ShopError {
    Lock,
}

impl From<LockError> for ShopError {
    fn from(_: LockError) -> Self {
        Self::Lock
    }
}

#[distributed_lock(key = "stock:{id}")]
async fn buy(id: &str) -> Result<u32, ShopError> {
    let number = id.parse::<u32>()?;
    Ok(number)
}

#[distributed_lock(key = "stock:{id}", on_error = |_| 0)]
async fn count(id: &str) -> u32 {
    id.parse::<u32>()?
}

fn main() {}
