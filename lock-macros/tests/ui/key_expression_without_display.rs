//! A field that cannot be shown.
#![allow(dead_code, unused_variables)]

use lock_runtime::{LockError, distributed_lock};

#[derive(Debug)]
struct Item {
    id: Option<u32>,
}

#[distributed_lock(key = "stock:{item.id}")]
async fn buy(item: Item) -> Result<u32, LockError> {
    Ok(1)
}

fn main() {}
