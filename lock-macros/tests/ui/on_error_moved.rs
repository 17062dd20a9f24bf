//! An argument that the body moves.
#![allow(dead_code, unused_variables)]

use lock_runtime::distributed_lock;

#[distributed_lock(key = "stock", on_error = |_| order.len())]
async fn buy(order: String) -> usize {
    drop(order);
    1
}

fn main() {}
