//! One set of servers that all tests of a binary share, each test under a prefix of its own.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use tokio::sync::OnceCell;

use super::{ClusterFleet, RedisServer, SentinelFleet};
use crate::{
    fixtures::unique,
    stores::{Home, Traces},
};

/// A service behind sentinels that is shared: its servers must be left in peace.
#[derive(Debug)]
pub struct SharedSentinels {
    fleet: &'static SentinelFleet,
    prefix: String,
}

impl SharedSentinels {
    /// A prefix without locks, on servers that the first call starts.
    pub async fn join() -> Self {
        static FLEET: OnceCell<SentinelFleet> = OnceCell::const_new();
        let start = async || {
            let fleet = SentinelFleet::start().await;
            tidy_up(fleet.nodes().iter().chain(fleet.sentinels()));
            fleet
        };
        Self {
            fleet: FLEET.get_or_init(start).await,
            prefix: unique("test"),
        }
    }
}

impl Home for SharedSentinels {
    fn url(&self) -> String {
        format!("{}?prefix={}", self.fleet.url(), self.prefix)
    }

    fn traces(&self) -> Traces<'_> {
        Box::pin(async {
            let master = &self.fleet.nodes()[self.fleet.master().await];
            master.keys(&format!("{}:{{*", self.prefix)).await
        })
    }
}

/// A cluster that is shared: its nodes must be left in peace.
#[derive(Debug)]
pub struct SharedCluster {
    fleet: &'static ClusterFleet,
    prefix: String,
}

impl SharedCluster {
    /// A prefix without locks, on servers that the first call starts.
    pub async fn join() -> Self {
        static FLEET: OnceCell<ClusterFleet> = OnceCell::const_new();
        let start = async || {
            let fleet = ClusterFleet::start().await;
            tidy_up(fleet.nodes());
            fleet
        };
        Self {
            fleet: FLEET.get_or_init(start).await,
            prefix: unique("test"),
        }
    }
}

impl Home for SharedCluster {
    fn url(&self) -> String {
        format!("{}?prefix={}", self.fleet.url(), self.prefix)
    }

    fn traces(&self) -> Traces<'_> {
        Box::pin(async {
            let mut traces = Vec::new();
            for node in self.fleet.nodes() {
                if node.is_master().await {
                    traces.extend(node.keys(&format!("{}:{{*", self.prefix)).await);
                }
            }
            // A lock's counter stays for a day by itself, whatever becomes of the lock.
            traces.retain(|key| !key.ends_with(":f"));
            traces
        })
    }
}

/// Removes the servers' directories when this process has ended: what all tests share is never dropped.
///
/// The kernel ends the servers then, as it does when a test is killed.
fn tidy_up<'a>(servers: impl IntoIterator<Item = &'a RedisServer>) {
    let directories = servers.into_iter().map(RedisServer::directory);
    // It reads until the other end is closed, by our end.
    let mut tidy = Command::new("sh")
        .args([
            "-c",
            "cat; until rm -rf -- \"$@\"; do sleep 0.1; done",
            "tidy",
        ])
        .args(directories.map(Path::as_os_str))
        .stdin(Stdio::piped())
        .spawn()
        .expect("a shell");
    let input = tidy.stdin.take();
    std::thread::spawn(move || {
        let _open = input;
        tidy.wait()
    });
}
