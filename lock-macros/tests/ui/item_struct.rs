//! A struct.
#![allow(dead_code, unused_variables)]

use lock_runtime::distributed_lock;

#[distributed_lock(key = "shop")]
struct Shop {
    id: u32,
}

fn main() {}
