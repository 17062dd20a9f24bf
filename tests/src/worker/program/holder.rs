//! Holds a lock of any kind, to be killed, stopped or ended in the middle.

use std::time::Duration;

use lock_runtime::{LockError, distributed_lock, init};
use tests::{connect, kinds::Kind};

use crate::Orders;

/// Takes the lock, says `held granted FENCE`, and holds it until the order `release`; says `released` then.
pub(crate) async fn holder(mut orders: Orders, url: &str, kind: &str, key: &str, ttl: &str) {
    let locks = connect(url).await;
    let ttl = Duration::from_millis(ttl.parse().expect("milliseconds"));
    let request = Kind::parse(kind).request(&locks, key).ttl(ttl);
    let outcome = request.run(async |guard| {
        println!("held granted {}", guard.fencing_token());
        orders.recv().await;
    });
    match outcome.await {
        Ok(()) => println!("released"),
        Err(error) => println!("{error}"),
    }
    locks.shutdown().await;
}

#[distributed_lock(key = "daily", min_hold = "5s", ttl = "60s", wait = "0s")]
async fn daily() -> Result<(), LockError> {
    println!("the body runs");
    Ok(())
}

/// A program of one call, which ends right after it.
pub(crate) async fn daily_job(url: &str) {
    let _locks = init(url).await.expect("connected");
    match daily().await {
        Ok(()) => println!("done"),
        Err(error) => println!("{error}"),
    }
}
