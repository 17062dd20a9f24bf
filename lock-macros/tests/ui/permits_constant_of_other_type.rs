//! A constant of another type.
#![allow(dead_code, unused_variables)]

use lock_runtime::{LockError, distributed_lock};

const PRINTERS: usize = 4;

#[distributed_lock(key = "stock:{id}", permits = PRINTERS)]
async fn buy(id: u32) -> Result<u32, LockError> {
    Ok(1)
}

fn main() {}
