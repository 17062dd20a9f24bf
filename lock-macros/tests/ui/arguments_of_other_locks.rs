//! Words of other locks.
#![allow(dead_code, unused_variables)]

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(name = "stock:{id}", lease = "10s", timeout = "5s")]
async fn buy(id: u32) -> Result<u32, LockError> {
    Ok(1)
}

fn main() {}
