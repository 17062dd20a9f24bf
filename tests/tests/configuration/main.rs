//! Promise: a configuration works or says at startup why it does not, and nothing runs without the lock.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

mod addresses;
mod credentials;
mod deserialized;
mod programs;
mod rights;
mod settings;
mod tls;
mod unreachable;

use std::time::{Duration, Instant};

use lock_runtime::{LockConfig, LockError};
use tests::{RedisServer, TIME_LIMIT, connect, eventually, within};

fn config(url: impl AsRef<str>) -> LockConfig {
    LockConfig::new(url).unwrap()
}

/// The text of an `Unavailable`, and how long it took to come.
async fn unavailable<T>(outcome: impl Future<Output = Result<T, LockError>>) -> (String, Duration) {
    let start = Instant::now();
    match within(TIME_LIMIT, outcome).await {
        Err(error @ LockError::Unavailable { .. }) => (error.to_string(), start.elapsed()),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it was available"),
    }
}

/// Locks, waits, hands over, renews and releases: everything that a manager asks of its server.
async fn works_end_to_end(server: &RedisServer, config: LockConfig) {
    let ttl = Duration::from_secs(1);
    let (locks, others) = (connect(config.clone()).await, connect(config).await);
    for key in 0..8 {
        let key = key.to_string();
        let guard = locks.lock(&key).ttl(ttl).acquire().await.unwrap();
        let busy = others.lock(&key).wait(Duration::ZERO).acquire().await;
        assert!(matches!(busy, Err(LockError::Contended { .. })));
        let gives_up = others.lock(&key).wait(Duration::from_millis(50)).acquire();
        assert!(within(TIME_LIMIT, gives_up).await.is_err());
        let waiter = tokio::spawn(others.lock(&key).acquire());
        if key == "0" {
            // Three renewals, and an ask of the waiter's.
            let work = guard.hold(tokio::time::sleep(ttl + ttl / 2));
            within(TIME_LIMIT, work).await.unwrap();
        }
        assert!(guard.release_confirmed().await.unwrap());
        let next = within(TIME_LIMIT, waiter).await.unwrap().unwrap();
        assert!(next.release_confirmed().await.unwrap());
    }
    eventually(TIME_LIMIT, async || server.keys("*{*").await.is_empty()).await;
}
