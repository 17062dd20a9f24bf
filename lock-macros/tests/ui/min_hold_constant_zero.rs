//! A constant that keeps nothing.
#![allow(dead_code, unused_variables)]

use lock_runtime::{LockError, distributed_lock};
use std::time::Duration;

const HOLD: Duration = Duration::ZERO;

#[distributed_lock(key = "stock:{id}", min_hold = HOLD)]
async fn buy(id: u32) -> Result<u32, LockError> {
    Ok(1)
}

fn main() {}
