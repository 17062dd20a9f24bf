//! `#[tokio::main]` first.
use lock_runtime::{LockError, distributed_lock};

#[tokio::main]
#[distributed_lock(key = "nightly")]
async fn main() -> Result<(), LockError> {
    Ok(())
}
