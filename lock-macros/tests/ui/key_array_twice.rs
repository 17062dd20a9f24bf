//! The same key twice.
#![allow(dead_code, unused_variables)]

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = ["acct:{from}", "acct:{from}"])]
async fn transfer(from: u32, to: u32) -> Result<u32, LockError> {
    Ok(1)
}

fn main() {}
