//! An own error that is not made of a `LockError`.
#![allow(dead_code, unused_variables)]

use lock_runtime::distributed_lock;

enum ShopError {
    SoldOut,
}

type ShopResult<T> = Result<T, ShopError>;

#[distributed_lock(key = "stock:{id}")]
async fn buy(id: u32) -> ShopResult<u32> {
    Err(ShopError::SoldOut)
}

fn main() {}
