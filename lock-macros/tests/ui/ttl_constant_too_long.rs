//! A constant above the maximum.
#![allow(dead_code, unused_variables)]

use lock_runtime::{LockError, distributed_lock};

mod limits {
    pub(crate) const TTL: std::time::Duration = std::time::Duration::from_secs(90_000);
}

#[distributed_lock(key = "stock:{id}", ttl = limits::TTL)]
async fn buy(id: u32) -> Result<u32, LockError> {
    Ok(1)
}

fn main() {}
