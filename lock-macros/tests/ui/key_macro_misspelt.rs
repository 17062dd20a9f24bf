//! A name that there is not, in `key!`.
#![allow(dead_code, unused_variables)]

use lock_runtime::{LockError, LockKey, key};

fn stock(item: u32) -> Result<LockKey, LockError> {
    key!("stock:{itm}")
}

fn main() {}
