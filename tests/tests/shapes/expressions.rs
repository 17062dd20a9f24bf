//! Settings whose values are known only when the function is called.

use std::time::Duration;

use async_trait::async_trait;
use lock_runtime::{LockError, distributed_lock};

use crate::harness::{refused, shape};
use crate::shop::{Result, ShopError, pause};

const MINUTE: Duration = Duration::from_secs(60);

struct Job {
    ttl: Duration,
    printers: u32,
}

impl Job {
    #[distributed_lock(
        key = "job",
        ttl = self.ttl,
        wait = budget,
        min_hold = Duration::from_millis(1),
        max_hold = MINUTE + self.ttl,
        permits = self.printers,
        guard = lock,
    )]
    async fn run(&self, budget: Duration) -> Result<Duration> {
        pause().await;
        Ok(lock.remaining())
    }
}

#[test]
fn expressions_of_the_arguments() {
    let job = Job {
        ttl: Duration::from_secs(100),
        printers: 2,
    };
    let call = job.run(Duration::from_secs(5));
    let remaining = shape("ttl = self.ttl, wait = budget", "job", call).unwrap();
    assert!(
        remaining < job.ttl && remaining > job.ttl / 2,
        "{remaining:?}"
    );
}

/// What is said of a value that is known when the function is called.
fn invalid(outcome: Result<Duration>) -> String {
    match outcome {
        Err(ShopError::Lock(error @ LockError::InvalidOptions { .. })) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn expressions_are_checked_when_the_lock_is_taken() {
    for (ttl, printers, says) in [
        (
            Duration::from_millis(99),
            1,
            "invalid ttl: it must be at least 100ms",
        ),
        (
            Duration::from_secs(1),
            0,
            "invalid permits: it must be at least 1",
        ),
    ] {
        let job = Job { ttl, printers };
        let outcome = refused("an expression out of range", "another", job.run(MINUTE));
        assert_eq!(invalid(outcome), says);
    }
}

#[async_trait]
trait Patient {
    async fn wait(&self, budget: Duration) -> Result<Duration>;
}

#[async_trait]
impl Patient for Job {
    #[distributed_lock(key = "patient", ttl = self.ttl, wait = 2 * budget, guard = lock)]
    async fn wait(&self, budget: Duration) -> Result<Duration> {
        pause().await;
        Ok(lock.remaining().min(budget))
    }
}

// Section: expansion.md#other-attributes
#[test]
fn expressions_of_what_async_trait_moves() {
    let job = Job {
        ttl: Duration::from_secs(100),
        printers: 1,
    };
    let call = job.wait(MINUTE);
    assert_eq!(
        shape("ttl = self.ttl in an async_trait", "patient", call).unwrap(),
        MINUTE
    );
}

#[distributed_lock(key = "counted", permits = COUNT)]
async fn counted<const COUNT: u32>() -> Result<u32> {
    pause().await;
    Ok(COUNT)
}

#[test]
fn a_const_parameter() {
    let call = counted::<3>();
    assert_eq!(
        shape("permits = COUNT, a const parameter", "counted", call).unwrap(),
        3
    );
}
