//! A function that does something before it boxes its future: that would run without the lock.
#![allow(dead_code, unused_variables)]

use std::pin::Pin;

use lock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "stock:{id}")]
fn buy(id: u32) -> Pin<Box<dyn Future<Output = Result<u32, LockError>>>> {
    let left = id + 1;
    Box::pin(async move { Ok(left) })
}

fn main() {}
