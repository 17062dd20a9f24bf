//! A whole trait.
#![allow(dead_code, unused_variables)]

use lock_runtime::distributed_lock;

#[distributed_lock(key = "shop")]
trait Shop {
    fn open(&self);
}

fn main() {}
