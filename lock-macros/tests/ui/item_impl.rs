//! A whole `impl` block.
#![allow(dead_code, unused_variables)]

use lock_runtime::distributed_lock;

struct Shop;

#[distributed_lock(key = "shop")]
impl Shop {
    async fn open(&self) {}
}

fn main() {}
