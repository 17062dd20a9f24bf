//! A width that comes from an argument.
#![allow(dead_code, unused_variables)]

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "stock:{id:width$}")]
async fn buy(id: u32, width: usize) -> Result<u32, LockError> {
    Ok(1)
}

fn main() {}
