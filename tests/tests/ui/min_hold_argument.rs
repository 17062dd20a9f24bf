//! Two durations that are known too late.
#![allow(dead_code, unused_variables)]

use lock_runtime::{LockError, distributed_lock};
use std::time::Duration;

#[distributed_lock(key = "stock:{id}", min_hold = least, max_hold = most)]
async fn buy(id: u32, least: Duration, most: Duration) -> Result<u32, LockError> {
    Ok(1)
}

fn main() {}
