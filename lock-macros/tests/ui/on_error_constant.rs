//! A value for a function.
#![allow(dead_code, unused_variables)]

use lock_runtime::distributed_lock;

#[distributed_lock(key = "stock:{id}", on_error = None)]
async fn buy(id: u32) -> Option<u32> {
    Some(1)
}

fn main() {}
