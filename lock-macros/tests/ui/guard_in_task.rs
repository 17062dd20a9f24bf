//! A guard in a task that the body spawns.
#![allow(dead_code, unused_variables)]

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "stock:{id}", guard = lock)]
async fn buy(id: u32) -> Result<u32, LockError> {
    tokio::spawn(async move { println!("{}", lock.fencing_token()) });
    Ok(1)
}

fn main() {}
