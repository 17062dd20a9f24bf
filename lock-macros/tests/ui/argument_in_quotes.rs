//! The name of an argument in quotes, and a value that is not complete.
#![allow(dead_code, unused_variables)]

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "stock:{id}", "ttl" = "10s", on_error = |error|)]
async fn buy(id: u32) -> Result<u32, LockError> {
    Ok(1)
}

fn main() {}
