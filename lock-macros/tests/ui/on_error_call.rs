//! A call for a function.
#![allow(dead_code, unused_variables)]

use lock_runtime::distributed_lock;

fn fallback() -> u32 {
    0
}

#[distributed_lock(key = "stock:{id}", on_error = fallback())]
async fn buy(id: u32) -> u32 {
    1
}

fn main() {}
