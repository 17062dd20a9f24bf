//! A body that runs to its end, and a lock that may not be taken at all.
#![allow(dead_code, unused_variables)]

use lock_runtime::distributed_lock;

#[distributed_lock(key = "stock:{id}", on_lost = "notify")]
async fn buy(id: u32) -> Option<u32> {
    Some(1)
}

fn main() {}
