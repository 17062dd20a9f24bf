//! Independent servers of which a majority decides.

use std::net::SocketAddr;

use super::RedisServer;

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
        let mut servers = Vec::new();
        for _ in 0..SERVERS {
            servers.push(RedisServer::start().await);
        }
        Self { servers }
    }

    /// The URL of all. New servers have forgotten no locks, so that nobody has to wait for the end of their quarantine.
    pub fn url(&self) -> String {
        Self::url_of(self.servers.iter().map(RedisServer::addr))
    }

    /// The same for these addresses.
    pub fn url_of(addresses: impl IntoIterator<Item = SocketAddr>) -> String {
        let hosts: Vec<_> = addresses.into_iter().map(|it| it.to_string()).collect();
        format!("redis+redlock://{}?quarantine=0s", hosts.join(","))
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
