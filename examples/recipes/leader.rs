//! Three candidates, and one of them leads.
//!
//! Look at `lead`: it waits for the lock for as long as it takes, and ends when the lock is lost, whatever it does then.
//! Here an operator revokes the lock; the next waiter leads on, with a larger fencing token.
//!
//! ```text
//! cargo run -p recipes --example leader
//! LOCK_URL=redis://127.0.0.1:6379 cargo run -p recipes --example leader
//! ```

use std::future::pending;
use std::time::Duration;

use lock_runtime::{LockError, LockManager, distributed_lock};
use tokio::sync::mpsc::{Sender, channel};
use tokio::time::sleep;

#[distributed_lock(key = "leader", wait = "forever", manager = locks, guard = lock)]
async fn lead(locks: &LockManager, name: &str, leads: &Sender<()>) -> Result<(), LockError> {
    println!("{name} leads, fencing token {}", lock.fencing_token());
    let _ = leads.send(()).await;
    pending().await // what a leader does
}

async fn stand(locks: LockManager, name: &'static str, leads: Sender<()>) {
    while let Err(error) = lead(&locks, name, &leads).await {
        match error {
            LockError::Lost { .. } => println!("{name} leads no more"),
            LockError::ShutDown => return,
            // The server cannot be reached: it is asked again.
            error => println!("{name}: {error}"),
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), LockError> {
    let url = std::env::var("LOCK_URL").unwrap_or_else(|_| "memory:candidates".to_owned());
    let operator = LockManager::connect(&url).await?;
    let (leads, mut led) = channel(1);
    for (waiting, name) in ["anna", "bert", "carl"].into_iter().enumerate() {
        let locks = LockManager::connect(&url).await?;
        tokio::spawn(stand(locks, name, leads.clone()));
        if waiting == 0 {
            led.recv().await;
        }
    }
    for _ in 0..3 {
        // The queue is complete when two wait.
        while operator.status("leader").await?.waiting < 2 {
            sleep(Duration::from_millis(5)).await;
        }
        operator.force_release("leader").await?;
        led.recv().await;
    }
    Ok(())
}
