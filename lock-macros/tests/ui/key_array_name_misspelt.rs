//! A name that is no argument, in the second key.
#![allow(dead_code, unused_variables)]

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = ["acct:{from}", "acct:{too}"])]
async fn transfer(from: u32, to: u32) -> Result<u32, LockError> {
    Ok(1)
}

fn main() {}
