//! A function that returns a future.
#![allow(dead_code, unused_variables)]

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "stock:{id}")]
fn buy(id: u32) -> impl Future<Output = Result<u32, LockError>> {
    async move { Ok(id) }
}

fn main() {}
