//! A method without a body.
#![allow(dead_code, unused_variables)]

use lock_runtime::{LockError, distributed_lock};

trait Shop {
    #[distributed_lock(key = "shop")]
    async fn open(&self) -> Result<u32, LockError>;
}

fn main() {}
