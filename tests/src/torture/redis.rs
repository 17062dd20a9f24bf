//! Servers of Redis under torture.

use std::net::SocketAddr;

use redis::Value;

use super::{
    Profile, Servers,
    site::{Site, Starting},
    store::{Doing, Fleet},
};
use crate::RedisServer;

/// Starts them with what the profile sets.
pub(super) async fn start(servers: Servers, profile: Profile) -> Site {
    let protection = profile.protection(servers);
    Site::start_with(
        servers,
        Starting {
            options: &[protection.options(), profile.limits()].concat(),
            with_clocks: servers == Servers::Redlock || profile == Profile::Clock,
        },
    )
    .await
}

impl Fleet for Site {
    fn addresses(&self) -> Vec<SocketAddr> {
        self.servers().map(RedisServer::addr).collect()
    }

    fn stop(&mut self, server: usize) {
        self.server(server).stop();
    }

    fn resume(&mut self, server: usize) {
        self.server(server).resume();
    }

    fn leader(&mut self) -> Doing<'_, usize> {
        Box::pin(self.any())
    }

    fn witnesses(&self, leader: usize) -> Vec<usize> {
        let servers = self.servers().count();
        match self {
            // The sentinels.
            Self::Sentinel(fleet) => (fleet.nodes().len()..servers).collect(),
            _ => (0..servers).filter(|it| *it != leader).collect(),
        }
    }

    fn minority(&self, leader: usize) -> Vec<usize> {
        let nodes = self.nodes().len();
        match self {
            // With one sentinel, or without any.
            Self::Sentinel(_) if fastrand::bool() => vec![leader, nodes],
            Self::Redlock(_) => vec![leader, (leader + 1) % nodes],
            _ => vec![leader],
        }
    }

    fn cut_off<'a>(&'a mut self, servers: &'a [usize]) -> Doing<'a, ()> {
        Box::pin(async {
            for server in servers.iter().filter(|it| self.has_peers(**it)) {
                Self::cut_off(self, *server).await;
            }
        })
    }

    fn rejoin<'a>(&'a mut self, servers: &'a [usize]) -> Doing<'a, ()> {
        Box::pin(async {
            for server in servers.iter().filter(|it| self.has_peers(**it)) {
                Self::rejoin(self, *server).await;
            }
        })
    }

    fn replace(&mut self, leader: usize) -> Doing<'_, ()> {
        Box::pin(async move {
            if !matches!(self, Self::One(_) | Self::Redlock(_)) {
                Self::replace(self, leader).await;
            }
        })
    }

    fn blind(&mut self, witness: usize) {
        match self {
            Self::Cluster(fleet) => fleet.deafen(witness),
            _ => self.server(witness).stop(),
        }
    }

    fn see(&mut self, witness: usize) {
        match self {
            Self::Cluster(fleet) => fleet.undeafen(witness),
            _ => self.server(witness).resume(),
        }
    }

    fn settled(&mut self) -> Doing<'_, ()> {
        Box::pin(Self::settled(self))
    }

    fn left_behind(&mut self) -> Doing<'_, Vec<String>> {
        Box::pin(async {
            let mut left = Vec::new();
            for master in self.masters().await {
                for key in master.keys("*torture-*").await {
                    // Queues and counters are kept for a while; owners are not.
                    let is_owner = key.ends_with('}');
                    if is_owner || master.cmd(&["PTTL", &key]).await == Value::Int(-1) {
                        left.push(key);
                    }
                }
            }
            left
        })
    }
}
