//! A name that is no argument, under `#[async_trait]`.
#![allow(dead_code, unused_variables)]

use lock_runtime::{LockError, distributed_lock};

#[async_trait::async_trait]
trait Shop {
    async fn buy(&self, item: u32) -> Result<u32, LockError>;
}

#[async_trait::async_trait]
impl Shop for () {
    #[distributed_lock(key = "stock:{itm}")]
    async fn buy(&self, item: u32) -> Result<u32, LockError> {
        Ok(item)
    }
}

fn main() {}
