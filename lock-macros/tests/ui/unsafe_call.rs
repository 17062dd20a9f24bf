//! An unsafe function stays unsafe.
#![allow(dead_code, unused_variables)]

use lock_runtime::{LockError, distributed_lock};

/// # Safety
///
/// None is needed.
#[distributed_lock(key = "stock:{id}")]
async unsafe fn buy(id: u32) -> Result<u32, LockError> {
    Ok(id)
}

async fn call() {
    let _ = unsafe { buy(1) }.await;
    let _ = buy(1).await;
}

fn main() {}
