//! Three candidates, one of which leads, and an operator who sees which one.
//!
//! Look at `stand`: a candidate waits for as long as it takes, and stops when it leads no more, whatever it does then.
//! Here the operator revokes each leader that it sees; the next candidate leads, with a larger fencing token.
//!
//! ```text
//! cargo run -p recipes --example leader
//! LOCK_URL=redis://127.0.0.1:6379 cargo run -p recipes --example leader
//! ```

use std::future::pending;
use std::time::Duration;

use lock_runtime::{Leader, Leaders, LockError, LockManager};
use tokio::time::sleep;

async fn stand(locks: LockManager, name: &'static str) {
    loop {
        let candidate = locks.election("reports").candidate(name);
        let led = candidate.run(async |_| {
            println!("{name} begins");
            pending::<()>().await; // what a leader does
        });
        match led.await {
            Ok(()) | Err(LockError::ShutDown) => return,
            Err(LockError::Lost { .. }) => println!("{name} stops"),
            Err(error) => {
                println!("{name}: {error}");
                let Some(pause) = error.retry_after() else {
                    return;
                };
                // The server cannot be reached: it is asked again.
                sleep(pause).await;
            }
        }
    }
}

async fn see(leaders: &mut Leaders) {
    if let Some(Leader {
        data,
        fencing_token,
        ..
    }) = leaders.next().await
    {
        println!("{data} leads, fencing token {fencing_token}");
    }
}

#[tokio::main]
async fn main() -> Result<(), LockError> {
    let url = std::env::var("LOCK_URL").unwrap_or_else(|_| "memory:candidates".to_owned());
    let operator = LockManager::connect(&url).await?;
    let mut leaders = operator.election("reports").observe()?;
    tokio::spawn(stand(LockManager::connect(&url).await?, "anna"));
    see(&mut leaders).await;
    for name in ["bert", "carl"] {
        tokio::spawn(stand(LockManager::connect(&url).await?, name));
    }
    for _ in 0..3 {
        // The queue is complete when two wait.
        while operator.status("reports").await?.waiting < 2 {
            sleep(Duration::from_millis(5)).await;
        }
        operator.force_release("reports").await?;
        see(&mut leaders).await;
    }
    Ok(())
}
