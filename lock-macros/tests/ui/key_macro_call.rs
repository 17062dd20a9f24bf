//! Something else than a literal in `key!`.
#![allow(dead_code, unused_variables)]

use lock_runtime::{LockKey, key};

fn stock(name: &str) -> [LockKey; 5] {
    [
        key!(name),
        key!(),
        key!("stock:{name}", name),
        key!("stock:{}"),
        key!("stock:{name}", crate = "lock_runtime"),
    ]
}

fn main() {}
