//! Streams and futures, which run after the release.
#![allow(dead_code)]
#![deny(deprecated)]

use std::{future::Future, pin::Pin};

use lock_runtime::{LockError, distributed_lock};

trait Stream {}

impl Stream for u32 {}

type BoxStream = Pin<Box<dyn Stream + Send>>;

#[distributed_lock(key = "rows")]
async fn opaque() -> Result<impl Stream, LockError> {
    Ok(1)
}

#[distributed_lock(key = "rows")]
async fn alias() -> Result<BoxStream, LockError> {
    Ok(Box::pin(1))
}

#[distributed_lock(key = "rows", on_error = |_| None)]
async fn object() -> Option<Pin<Box<dyn Future<Output = u32> + Send>>> {
    Some(Box::pin(async { 1 }))
}

#[async_trait::async_trait]
trait Rows {
    #[distributed_lock(key = "rows")]
    async fn boxed(&self) -> Result<BoxStream, LockError> {
        Ok(Box::pin(1))
    }
}

#[allow(deprecated)]
#[distributed_lock(key = "rows")]
async fn meant() -> Result<impl Stream, LockError> {
    Ok(1)
}

fn main() {}
