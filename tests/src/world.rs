//! The stores that the suite runs on, and what its tests have in common.

use std::{
    future::poll_fn,
    pin::Pin,
    task::Poll,
    time::{Duration, Instant},
};

use lock_runtime::{Acquire, LockConfig, LockKey, LockManager, LockRequest};

use crate::{RedisServer, unique, within};

/// No promise is about times as long as this: something hangs.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Longer than any test, so that no lease ends by itself.
pub const LONG: Duration = Duration::from_secs(60);

/// A store that any number of managers share.
#[derive(Debug)]
pub enum World {
    /// In this process, under a name.
    Memory(String),
    /// On a server of the test's own.
    Redis(Box<RedisServer>),
}

impl World {
    /// A store of the test's own in memory.
    pub fn memory() -> Self {
        Self::Memory(unique("world"))
    }

    /// A server of the test's own.
    pub async fn redis() -> Self {
        Self::Redis(Box::new(RedisServer::start().await))
    }

    /// What a manager of this store is configured with.
    pub fn config(&self) -> LockConfig {
        let url = match self {
            Self::Memory(name) => format!("memory:{name}"),
            Self::Redis(server) => server.url(),
        };
        LockConfig::new(url).expect("a URL")
    }

    /// One of the processes that share the store, so to speak: a thread, connections and a state of its own.
    pub async fn manager(&self) -> LockManager {
        LockManager::connect(self.config())
            .await
            .expect("connected")
    }

    /// What the store keeps of locks; of a store in memory nothing can be seen.
    pub async fn traces(&self) -> Vec<String> {
        match self {
            Self::Memory(_) => Vec::new(),
            Self::Redis(server) => server.keys("*{*").await,
        }
    }
}

/// Makes a test for each world of every function that takes a world.
#[macro_export]
macro_rules! in_every_world {
    ($($test:ident),* $(,)?) => {
        mod memory {
            $(#[tokio::test]
            async fn $test() {
                super::$test($crate::world::World::memory()).await;
            })*
        }
        mod redis {
            $(#[tokio::test]
            async fn $test() {
                super::$test($crate::world::World::redis().await).await;
            })*
        }
    };
}
pub use in_every_world;

/// Takes a free lock, and lets it go.
pub async fn take(locks: &LockManager, key: impl Into<LockKey>) -> u64 {
    let request = locks.lock(key).wait(Duration::ZERO).ttl(LONG);
    let guard = within(PATIENCE, request.acquire())
        .await
        .expect("the lock is free");
    let fence = guard.fencing_token().get();
    crate::release(guard).await;
    fence
}

/// Polls a future once.
pub async fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    poll_fn(|cx| Poll::Ready(Pin::new(&mut *future).poll(cx))).await
}

/// Returns when what `locks` was asked before has reached the store: a manager with one connection keeps the order.
pub async fn settled(locks: &LockManager) {
    take(locks, unique("settled")).await;
}

/// Starts to wait for a held lock; returns when the waiter stands in line.
pub async fn in_line(locks: &LockManager, request: LockRequest) -> Acquire {
    let mut waiter = request.acquire();
    assert!(poll_once(&mut waiter).await.is_pending());
    settled(locks).await;
    waiter
}

/// How long a future takes, and its output.
pub async fn timed<F: Future>(future: F) -> (Duration, F::Output) {
    let start = Instant::now();
    let output = within(PATIENCE, future).await;
    (start.elapsed(), output)
}
