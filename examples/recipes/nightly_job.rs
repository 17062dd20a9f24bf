//! Three machines start the same job every night, and one of them runs it.
//!
//! Look at `wait = "0s"`: whoever comes second does not wait, it skips the job. `min_hold` keeps the lock closed after a
//! short run, for the machine whose clock is late. Each machine is a manager here; in earnest it is a process.
//!
//! ```text
//! cargo run -p recipes --example nightly_job
//! LOCK_URL=redis://127.0.0.1:6379 cargo run -p recipes --example nightly_job
//! ```

use std::time::Duration;

use lock_runtime::{LockError, LockManager, distributed_lock};
use tokio::time::sleep;

#[distributed_lock(key = "job:{name}", wait = "0s", min_hold = "10s", manager = locks)]
async fn run(locks: &LockManager, name: &str) -> Result<(), LockError> {
    sleep(Duration::from_millis(20)).await;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), LockError> {
    let url = std::env::var("LOCK_URL").unwrap_or_else(|_| "memory:machines".to_owned());
    let mut machines = Vec::new();
    for name in ["anna", "bert", "carl"] {
        machines.push((name, LockManager::connect(&url).await?));
    }
    for (name, locks) in &machines {
        match run(locks, "invoices").await {
            Ok(()) => println!("{name}: the invoices are written"),
            Err(error @ LockError::Contended { .. }) => println!("{name}: skipped, {error}"),
            Err(error) => return Err(error),
        }
        sleep(Duration::from_millis(50)).await; // the next clock is late
    }
    Ok(())
}
