//! A name that there is not, in `key!`.
#![allow(dead_code, unused_variables)]

use lock_runtime::{LockKey, key};

fn stock(item: u32) -> LockKey {
    key!("stock:{itm}")
}

fn main() {}
