//! A body that moves what it has borrowed: the error names it.
#![allow(dead_code, unused_variables)]

use lock_runtime::{LockError, distributed_lock};

struct Shop {
    name: String,
}

impl Shop {
    #[distributed_lock(key = "stock")]
    async fn buy(&self) -> Result<String, LockError> {
        Ok(self.name)
    }
}

fn main() {}
