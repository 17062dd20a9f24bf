//! A partner allows four calls within half a second, counted over all machines.
//!
//! Look at `permits` and `min_hold`: four calls hold a permit each, and a permit cools down until half a second after it was
//! taken, also if the call took less. Later callers wait in the queue for one.
//!
//! ```text
//! cargo run -p recipes --example rate_limit
//! LOCK_URL=redis://127.0.0.1:6379 cargo run -p recipes --example rate_limit
//! ```

use std::time::{Duration, Instant};

use lock_runtime::{LockError, distributed_lock};
use tokio::task::JoinSet;
use tokio::time::sleep;

const CALLS: usize = 12;

#[distributed_lock(key = "partner", permits = 4, min_hold = "500ms", wait = "30s")]
async fn call() -> Result<Instant, LockError> {
    let began = Instant::now();
    sleep(Duration::from_millis(10)).await;
    Ok(began)
}

#[tokio::main]
async fn main() -> Result<(), LockError> {
    let url = std::env::var("LOCK_URL").unwrap_or_else(|_| "memory:".to_owned());
    let _locks = lock_runtime::init(url).await?;

    let start = Instant::now();
    let mut calls = JoinSet::new();
    for _ in 0..CALLS {
        calls.spawn(call());
    }
    let began = calls
        .join_all()
        .await
        .into_iter()
        .collect::<Result<Vec<_>, _>>()?;
    let mut times: Vec<_> = began
        .iter()
        .map(|began| began.duration_since(start).as_millis())
        .collect();
    times.sort_unstable();
    println!("{CALLS} calls began after {times:?} ms");
    let gap = times
        .windows(5)
        .map(|calls| calls[4] - calls[0])
        .min()
        .unwrap_or_default();
    println!("five calls in a row took {gap} ms at least");
    Ok(())
}
