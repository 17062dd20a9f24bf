//! An output that is not `Send` and waits for the release.
#![allow(dead_code, unused_variables)]

use lock_runtime::distributed_lock;

#[distributed_lock(key = "stock", release = "confirmed")]
async fn buy(id: u32) -> Result<u32, Box<dyn std::error::Error>> {
    Ok(id)
}

fn spawn() {
    tokio::spawn(async { buy(1).await.is_ok() });
}

fn main() {}
