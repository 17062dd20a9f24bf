//! A constant that lets nobody in.
#![allow(dead_code, unused_variables)]

use lock_runtime::{LockError, distributed_lock};

const PRINTERS: u32 = 0;

#[distributed_lock(key = "stock:{id}", permits = PRINTERS)]
async fn buy(id: u32) -> Result<u32, LockError> {
    Ok(1)
}

fn main() {}
