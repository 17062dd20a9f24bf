//! A function that returns something else.
#![allow(dead_code, unused_variables)]

use lock_runtime::distributed_lock;

#[distributed_lock(key = "stock:{id}", on_error = |error| error.to_string())]
async fn buy(id: u32) -> u32 {
    1
}

fn main() {}
