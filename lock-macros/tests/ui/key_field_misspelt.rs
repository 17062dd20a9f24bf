//! A field that there is not.
#![allow(dead_code, unused_variables)]

use lock_runtime::{LockError, distributed_lock};

struct Item {
    id: u32,
}

#[distributed_lock(key = "stock:{item.idd}")]
async fn buy(item: Item) -> Result<u32, LockError> {
    Ok(1)
}

fn main() {}
