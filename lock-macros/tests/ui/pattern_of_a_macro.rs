//! An argument whose pattern a macro writes.
#![allow(dead_code, unused_variables)]

use lock_runtime::{LockError, distributed_lock};

macro_rules! pair {
    ($a:ident, $b:ident) => {
        ($a, $b)
    };
}

#[distributed_lock(key = "stock:{shop}:{item}")]
async fn buy((pair!(shop, item), _): ((String, String), u32)) -> Result<(), LockError> {
    Ok(())
}

fn main() {}
