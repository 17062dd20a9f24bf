//! Servers behind Sentinel: locks follow the master, whichever that is.

mod access;
mod failover;
mod finding;
mod stale;

use std::time::Duration;

use lock_runtime::LockConfig;
use tests::{RedisServer, SentinelFleet, eventually};

/// A failover takes about a second, and more on a busy machine.
const FAILED_OVER: Duration = Duration::from_secs(15);

/// Goes on however long a failover takes.
fn config(url: impl AsRef<str>) -> LockConfig {
    LockConfig::new(url)
        .expect("a URL")
        .unavailable_wait_forever()
}

/// A fleet that replaces a master by itself when it is silent.
async fn watchful() -> SentinelFleet {
    let builder = SentinelFleet::builder();
    builder.down_after(Duration::from_secs(2)).start().await
}

/// Returns when every replica has what the master has.
async fn replicated(fleet: &SentinelFleet) {
    let master = &fleet.nodes()[fleet.master().await];
    let mut connection = master.connection().await;
    let mut pipeline = redis::pipe();
    pipeline.cmd("SET").arg("mark").arg("");
    pipeline.cmd("WAIT").arg(2).arg(5000);
    let (_, count): (String, usize) = pipeline
        .query_async(&mut connection)
        .await
        .expect("an answer");
    assert_eq!(count, 2, "both replicas keep up");
}

/// Returns when no lock's connection is left on a server that is the master no more.
async fn left(server: &RedisServer) {
    let nobody = async || server.listeners().await == 0;
    // Sentinels are asked every two seconds even where they do not tell.
    eventually(Duration::from_secs(1), nobody).await;
}

/// The master of the moment.
async fn master(fleet: &SentinelFleet) -> &RedisServer {
    &fleet.nodes()[fleet.master().await]
}
