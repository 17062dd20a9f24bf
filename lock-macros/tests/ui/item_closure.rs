//! A closure.
#![allow(dead_code, unused_variables)]

use lock_runtime::distributed_lock;

fn buyer() {
    let buy = #[distributed_lock(key = "stock")]
    async |id: u32| id;
}

fn main() {}
