//! Many mistakes, reported together.
#![allow(dead_code, unused_variables)]

use lock_runtime::distributed_lock;

#[distributed_lock(kye = "a", ttl = 10, wait = "5", renew = "no", ttl = "1s")]
fn buy(id: u32) -> Option<u32> {
    None
}

fn main() {}
