//! A module.
#![allow(dead_code, unused_variables)]

use lock_runtime::distributed_lock;

#[distributed_lock(key = "shop")]
mod shop {}

fn main() {}
