//! A ticket, which names its lock, beside a key.
#![allow(dead_code, unused_variables)]

use lock_runtime::{LockError, Ticket, distributed_lock};

#[distributed_lock(key = "video:{id}", ticket = ticket)]
async fn work(id: u32, ticket: Ticket) -> Result<u32, LockError> {
    Ok(1)
}

fn main() {}
