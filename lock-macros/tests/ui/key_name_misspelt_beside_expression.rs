//! A name that is no argument beside an expression.
#![allow(dead_code, unused_variables)]

use lock_runtime::{LockError, distributed_lock};

struct Item {
    id: u32,
}

#[distributed_lock(key = "stock:{shp}:{item.id}")]
async fn buy(shop: u32, item: Item) -> Result<u32, LockError> {
    Ok(1)
}

fn main() {}
