//! Promise: a refusal of a server is reported as what it is, in time, and forgotten once it serves again.

mod connection;
mod for_good;
mod for_now;

use std::time::{Duration, Instant};

use lock_runtime::{LockConfig, LockError, LockGuard, LockManager};
use tests::{RedisServer, connect, granted, leaves_nothing, queue, release, take, unique, within};
use tokio::task::JoinHandle;

/// A holder outlives a fault of half as long.
const TTL: Duration = Duration::from_secs(4);
const SECOND: Duration = Duration::from_secs(1);
const SOON: Duration = Duration::from_secs(20);

/// An operation is sent again within this time of the end of a fault.
const FOUND: Duration = Duration::from_secs(2);

/// A server and two processes, so to speak, that share its locks.
struct Scene {
    server: RedisServer,
    locks: LockManager,
    others: LockManager,
}

impl Scene {
    async fn new(server: RedisServer) -> Self {
        let url = server.url();
        Self::at(server, &url).await
    }

    async fn at(server: RedisServer, url: &str) -> Self {
        // On a busy machine a fault lasts for longer.
        let config = LockConfig::new(url).expect("a URL").unavailable_wait(SOON);
        Self {
            locks: connect(url).await,
            others: connect(config).await,
            server,
        }
    }

    async fn take(&self, key: &str) -> LockGuard {
        take(&self.locks, key, TTL).await
    }

    /// The others wait for `key`; the holder releases it last.
    async fn queue(&self, key: &str) -> JoinHandle<LockGuard> {
        queue(&self.server, &self.others, key, TTL, 1).await
    }

    /// Why a lock could not be taken within `wait`, and how long it took to say so.
    async fn unavailable(&self, key: &str, wait: Duration) -> (String, Duration) {
        let start = Instant::now();
        let acquire = self.locks.lock(key).ttl(TTL).wait(wait).acquire();
        match within(wait + SOON, acquire).await {
            Err(error @ LockError::Unavailable { .. }) => (error.to_string(), start.elapsed()),
            Err(error) => panic!("{error}"),
            Ok(_) => panic!("it was granted"),
        }
    }

    /// All is well: a lock is taken, waited for, handed over and released, without a trace.
    async fn works(&self) {
        let key = unique("works");
        let guard = self.take(&key).await;
        let fence = guard.fencing_token();
        let waiter = self.queue(&key).await;
        guard.release();
        let next = granted(FOUND, waiter).await;
        assert!(next.fencing_token() > fence);
        release(next).await;
        leaves_nothing(&self.server, &key, SOON).await;
    }
}

/// The text of what the server says to a command.
async fn says(server: &RedisServer, command: &str) -> String {
    let mut connection = server.connection().await;
    let command = redis::cmd(command);
    let answer = command.query_async::<String>(&mut connection).await;
    answer.unwrap_or_else(|error| error.to_string())
}
