//! Mistakes in every key, reported together.
#![allow(dead_code, unused_variables)]

use lock_runtime::{LockError, distributed_lock};

struct Account {
    id: u32,
}

#[distributed_lock(key = ["{from.id}{to.id}", "acct:{too.id}", "", "acct:{fron.id}"], ttl = 10)]
async fn transfer(from: Account, to: Account) -> Result<u32, LockError> {
    Ok(1)
}

fn main() {}
