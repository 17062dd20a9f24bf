//! A return type without a place, under `#[async_trait]`.
#![allow(dead_code, unused_variables)]

use lock_runtime::distributed_lock;

#[async_trait::async_trait]
trait Shop {
    #[distributed_lock(key = "stock:{item}")]
    async fn buy(&self, item: u32) -> Option<u32> {
        Some(item)
    }
}

fn main() {}
