//! Lints see what the key uses, also under `#[async_trait]`.
#![deny(unused)]

use lock_runtime::{LockError, distributed_lock};

#[async_trait::async_trait]
pub trait Shop {
    #[distributed_lock(key = "stock:{item}:{a}")]
    async fn buy(&self, item: u32, (a, b): (u32, u32), unused: u32) -> Result<(), LockError> {
        Ok(())
    }
}

fn main() {}
