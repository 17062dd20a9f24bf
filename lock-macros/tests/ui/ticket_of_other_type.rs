//! A ticket that is still a text.
#![allow(dead_code, unused_variables)]

use lock_runtime::{LockError, LockManager, distributed_lock};

struct Job {
    ticket: String,
}

#[distributed_lock(ticket = job.ticket, manager = locks)]
async fn work(locks: &LockManager, job: Job) -> Result<u32, LockError> {
    Ok(1)
}

fn main() {}
