//! The servers that keep the tortured locks: one, or many that fail over or shard.

use tokio::time::sleep;

use super::{TTL, fault::about_a_lease};
use crate::{ClusterFleet, RedisServer, SentinelFleet};

/// Which servers there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Servers {
    /// One.
    Redis,
    /// A master with replicas and sentinels.
    Sentinel,
    /// Masters with a replica each.
    Cluster,
}

impl Servers {
    /// All of them, by the names that the command line knows.
    pub const ALL: [(&str, Self); 3] = [
        ("redis", Self::Redis),
        ("sentinel", Self::Sentinel),
        ("cluster", Self::Cluster),
    ];

    /// How many replicas each master has.
    pub fn replicas(self) -> usize {
        match self {
            Self::Redis => 0,
            Self::Sentinel => 2,
            Self::Cluster => 1,
        }
    }
}

/// Such servers, running.
#[derive(Debug)]
pub(super) enum Site {
    One(RedisServer),
    Sentinel(SentinelFleet),
    Cluster(ClusterFleet),
}

impl Site {
    /// Servers that fail over.
    pub(super) async fn start(servers: Servers) -> Self {
        match servers {
            Servers::Redis => Self::One(RedisServer::start().await),
            Servers::Sentinel => Self::Sentinel(SentinelFleet::start().await),
            Servers::Cluster => Self::Cluster(ClusterFleet::start().await),
        }
    }

    pub(super) fn url(&self) -> String {
        match self {
            Self::One(server) => server.url(),
            Self::Sentinel(fleet) => fleet.url(),
            Self::Cluster(fleet) => fleet.url(),
        }
    }

    /// The masters and replicas.
    fn nodes(&self) -> &[RedisServer] {
        match self {
            Self::One(server) => std::slice::from_ref(server),
            Self::Sentinel(fleet) => fleet.nodes(),
            Self::Cluster(fleet) => fleet.nodes(),
        }
    }

    fn node_mut(&mut self, number: usize) -> &mut RedisServer {
        match self {
            Self::One(server) => server,
            Self::Sentinel(fleet) => fleet.node_mut(number),
            Self::Cluster(fleet) => fleet.node_mut(number),
        }
    }

    /// The master of a server's key.
    pub(super) async fn master_of(&self, key: &str) -> &RedisServer {
        let number = match self {
            Self::One(_) => 0,
            Self::Sentinel(fleet) => fleet.master().await,
            Self::Cluster(fleet) => fleet.master_of(key).await,
        };
        &self.nodes()[number]
    }

    /// One of the masters.
    pub(super) async fn any_master(&self) -> &RedisServer {
        &self.nodes()[self.any().await]
    }

    async fn any(&self) -> usize {
        match self {
            Self::One(_) => 0,
            Self::Sentinel(fleet) => fleet.master().await,
            Self::Cluster(fleet) => fleet.owner(fastrand::u16(..16_384)).await,
        }
    }

    /// All masters, of servers that are well.
    pub(super) async fn masters(&self) -> Vec<&RedisServer> {
        let mut masters = Vec::new();
        for node in self.nodes() {
            if node.is_master().await {
                masters.push(node);
            }
        }
        masters
    }

    /// A replica takes the place of a master, which is killed, stopped, cut off or well, and comes back as a replica.
    pub(super) async fn fail_over(&mut self) -> &'static str {
        let old = self.any().await;
        let what = match fastrand::u8(..4) {
            0 => {
                self.node_mut(old).kill().await;
                self.replace(old).await;
                self.node_mut(old).restart().await;
                "masters killed"
            }
            1 => {
                self.nodes()[old].stop();
                self.replace(old).await;
                sleep(about_a_lease()).await;
                // It still believes to be a master, and serves what was sent meanwhile.
                self.nodes()[old].resume();
                "masters stopped"
            }
            2 => {
                self.cut_off(old).await;
                self.replace(old).await;
                // Clients that reach it are served, unless they ask for more.
                sleep(TTL).await;
                self.rejoin(old).await;
                "masters cut off"
            }
            _ => {
                self.replace(old).await;
                "masters replaced"
            }
        };
        self.settled().await;
        what
    }

    pub(super) async fn replace(&self, master: usize) -> usize {
        match self {
            Self::One(_) => panic!("one server has no replica"),
            Self::Sentinel(fleet) => fleet.failover().await,
            Self::Cluster(fleet) => fleet.take_over(master).await,
        }
    }

    async fn cut_off(&self, node: usize) {
        match self {
            Self::One(_) => panic!("one server has no peers"),
            Self::Sentinel(fleet) => fleet.cut_off(node).await,
            Self::Cluster(fleet) => fleet.cut_off(node).await,
        }
    }

    async fn rejoin(&self, node: usize) {
        match self {
            Self::One(_) => {}
            Self::Sentinel(fleet) => fleet.rejoin(node).await,
            Self::Cluster(fleet) => fleet.rejoin(node).await,
        }
    }

    async fn settled(&self) {
        match self {
            Self::One(_) => {}
            Self::Sentinel(fleet) => fleet.settled().await,
            Self::Cluster(fleet) => fleet.settled().await,
        }
    }
}
