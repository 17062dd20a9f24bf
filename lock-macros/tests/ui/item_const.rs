//! A const function.
#![allow(dead_code, unused_variables)]

use lock_runtime::distributed_lock;

#[distributed_lock(key = "stock:{id}")]
const fn buy(id: u32) -> u32 {
    id
}

fn main() {}
