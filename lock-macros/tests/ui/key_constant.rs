//! A constant in place of a literal.
#![allow(dead_code, unused_variables)]

use lock_runtime::{LockError, distributed_lock};

const KEY: &str = "stock:{id}";

#[distributed_lock(key = KEY)]
async fn buy(id: u32) -> Result<u32, LockError> {
    Ok(1)
}

fn main() {}
