//! Promise: up to edition 2021, temporaries of the last expression are dropped after the local variables, with the attribute as
//! without it. This package has the edition 2021, the others have 2024.
#![allow(
    clippy::unwrap_used,
    clippy::unnecessary_wraps,
    clippy::unused_async,
    clippy::unused_self,
    reason = "a panic fails the test, and functions have the signatures that it needs"
)]

use std::sync::Mutex;

use lock_runtime::{distributed_lock, LockError};

static DROPPED: Mutex<Vec<&str>> = Mutex::new(Vec::new());

struct Noted(&'static str);

impl Noted {
    fn number(&self) -> Result<u32, LockError> {
        Ok(1)
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        DROPPED.lock().unwrap().push(self.0);
    }
}

async fn plain() -> Result<u32, LockError> {
    let _local = Noted("local");
    Noted("temporary").number()
}

#[distributed_lock(key = "stock")]
async fn locked() -> Result<u32, LockError> {
    let _local = Noted("local");
    Noted("temporary").number()
}

#[distributed_lock(key = "stock", guard = lock)]
async fn guarded() -> Result<u32, LockError> {
    let _local = Noted("local");
    Noted("temporary").number().filter(lock.is_held())
}

trait Filter: Sized {
    fn filter(self, wanted: bool) -> Self {
        assert!(wanted);
        self
    }
}

impl Filter for Result<u32, LockError> {}

fn dropped() -> Vec<&'static str> {
    std::mem::take(&mut DROPPED.lock().unwrap())
}

#[tokio::test]
async fn temporaries_are_dropped_after_the_local_variables() -> Result<(), LockError> {
    let _locks = lock_runtime::init("memory:").await?;
    plain().await?;
    let as_written = dropped();
    assert_eq!(as_written, ["local", "temporary"]);
    locked().await?;
    assert_eq!(dropped(), as_written);
    guarded().await?;
    assert_eq!(dropped(), as_written);
    Ok(())
}
