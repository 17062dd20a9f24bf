//! A field that there is not, in the second key.
#![allow(dead_code, unused_variables)]

use lock_runtime::{LockError, distributed_lock};

struct Account {
    id: u32,
}

#[distributed_lock(key = ["acct:{from.id}", "acct:{to.idd}"])]
async fn transfer(from: Account, to: Account) -> Result<u32, LockError> {
    Ok(1)
}

fn main() {}
