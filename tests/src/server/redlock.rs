//! Independent servers of which a majority decides.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use super::{RedisServer, clock::Clocks};

/// How many there are.
const SERVERS: usize = 5;

/// Five servers that know nothing of each other; each may be killed, stopped and restarted.
#[derive(Debug)]
pub struct RedlockFleet {
    /// In the order in which the URL names them.
    pub servers: Vec<RedisServer>,
}

impl RedlockFleet {
    /// Servers that keep nothing on disk.
    pub async fn start() -> Self {
        Self::with(None).await
    }

    /// Such servers with clocks that can be moved. `None` where there are no such clocks; a notice says then that `test`
    /// is skipped.
    pub async fn with_clocks(test: &str) -> Option<Self> {
        let clocks = Clocks::new(SERVERS, test)?;
        Some(Self::with(Some(clocks.into())).await)
    }

    async fn with(clocks: Option<Arc<Clocks>>) -> Self {
        let mut servers = Vec::new();
        for number in 0..SERVERS {
            let mut builder = RedisServer::builder();
            if let Some(clocks) = &clocks {
                builder = builder.clock(clocks, number);
            }
            servers.push(builder.start().await);
        }
        Self { servers }
    }

    /// Whether the clocks can be moved.
    pub(crate) fn has_clocks(&self) -> bool {
        self.servers.iter().all(RedisServer::has_clock)
    }

    /// The clock of a server jumps: it is ahead of the machine's by so much from now on.
    pub async fn set_clock(&self, server: usize, ahead: Duration) {
        self.servers[server].set_clock(ahead).await;
    }

    /// The URL of all. New servers have forgotten no locks, so that nobody has to wait for the end of their quarantine.
    pub fn url(&self) -> String {
        Self::url_of(self.servers.iter().map(RedisServer::addr))
    }

    /// The URL without settings.
    pub(crate) fn bare_url(&self) -> String {
        bare_url_of(self.servers.iter().map(RedisServer::addr))
    }

    /// The URL of servers at these addresses.
    pub fn url_of(addresses: impl IntoIterator<Item = SocketAddr>) -> String {
        bare_url_of(addresses) + "?quarantine=0s"
    }

    /// What all of them keep of locks.
    pub async fn traces(&self) -> Vec<String> {
        let mut keys = Vec::new();
        for server in &self.servers {
            keys.extend(server.keys("*{*").await);
        }
        keys
    }
}

fn bare_url_of(addresses: impl IntoIterator<Item = SocketAddr>) -> String {
    let hosts: Vec<_> = addresses.into_iter().map(|it| it.to_string()).collect();
    format!("redis+redlock://{}", hosts.join(","))
}
