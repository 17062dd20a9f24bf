//! Promise: what a server refuses is told as what it is, in time, and forgotten once it serves again.

mod connection;
mod for_good;
mod for_now;

use std::time::{Duration, Instant};

use lock_runtime::{LockError, LockGuard, LockManager};
use tests::{Pulse, RedisServer, eventually, unique, within};
use tokio::{task::JoinHandle, time::timeout};

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
        Self {
            locks: LockManager::connect(url).await.expect("connected"),
            others: LockManager::connect(url).await.expect("connected"),
            server,
        }
    }

    async fn take(&self, key: &str) -> LockGuard {
        let acquire = self.locks.lock(key).ttl(TTL).wait(SOON).acquire();
        within(SOON, acquire).await.expect("the lock is free")
    }

    /// The others wait in the line of `key`, at last for its head.
    async fn queue(&self, key: &str) -> JoinHandle<LockGuard> {
        let acquire = self.others.lock(key).ttl(TTL).wait_forever().acquire();
        let waiter = tokio::spawn(async move { acquire.await.expect("an answer at last") });
        eventually(SOON, async || self.server.waiting(key).await == 1).await;
        waiter
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
        let next = within(FOUND, waiter).await.expect("no panic");
        assert!(next.fencing_token() > fence);
        let released = within(SOON, next.release_confirmed()).await;
        assert!(released.expect("an answer"));
        let nothing = async || self.server.traces(&key).await.is_empty();
        eventually(SOON, nothing).await;
    }
}

/// Runs a body under the lock for so long, and releases it.
fn work(guard: LockGuard, pulse: &Pulse, time: Duration) -> JoinHandle<Result<(), LockError>> {
    let pulse = pulse.clone();
    tokio::spawn(async move {
        let body = timeout(time, pulse.beat(&guard));
        guard.hold(body).await.map(|_| ())
    })
}

/// The text of what the server says to a command.
async fn says(server: &RedisServer, command: &str) -> String {
    let mut connection = server.connection().await;
    let command = redis::cmd(command);
    let answer = command.query_async::<String>(&mut connection).await;
    answer.unwrap_or_else(|error| error.to_string())
}
