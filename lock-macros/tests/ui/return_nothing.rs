//! Nothing.
#![allow(dead_code, unused_variables)]

use lock_runtime::distributed_lock;

#[distributed_lock(key = "stock:{id}")]
async fn buy(id: u32) {
    drop(id);
}

fn main() {}
