//! The servers that keep the tortured locks: one, many that fail over or shard, or independent ones.

use tokio::time::sleep;

use super::fault::about_a_lease;
use crate::{ClusterFleet, RedisServer, RedlockFleet, SentinelFleet};

/// Which servers there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Servers {
    /// One.
    Redis,
    /// A master with replicas and sentinels.
    Sentinel,
    /// Masters with a replica each.
    Cluster,
    /// Five that know nothing of each other.
    Redlock,
}

impl Servers {
    /// All of them, by the names that the command line knows.
    pub const ALL: [(&str, Self); 4] = [
        ("redis", Self::Redis),
        ("sentinel", Self::Sentinel),
        ("cluster", Self::Cluster),
        ("redlock", Self::Redlock),
    ];

    /// Whether a lock is handed to several of one connection at once: independent servers grant to one at a time.
    pub fn chain(self) -> bool {
        self != Self::Redlock
    }

    /// How many replicas each master has.
    pub fn replicas(self) -> usize {
        match self {
            Self::Redis | Self::Redlock => 0,
            Self::Sentinel => 2,
            Self::Cluster => 1,
        }
    }
}

/// What happens to a master before it is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blow {
    /// Nothing: it is well.
    None,
    /// It ends, and starts again later.
    Kill,
    /// It stands still for a while.
    Stop,
    /// Its replicas and sentinels do not reach it for a while, but clients do.
    CutOff,
}

impl Blow {
    /// All of them, by what is said of a master.
    pub(crate) const ALL: [(&str, Self); 4] = [
        ("masters replaced", Self::None),
        ("masters killed", Self::Kill),
        ("masters stopped", Self::Stop),
        ("masters cut off", Self::CutOff),
    ];
}

/// Such servers, running.
#[derive(Debug)]
pub(crate) enum Site {
    One(Box<RedisServer>),
    Sentinel(SentinelFleet),
    Cluster(ClusterFleet),
    Redlock(RedlockFleet),
}

impl Site {
    /// Starts them, those that fail over with these options.
    pub(crate) async fn start(servers: Servers, options: &[(&str, &str)]) -> Self {
        match servers {
            Servers::Redis => Self::One(Box::new(RedisServer::start().await)),
            Servers::Sentinel => {
                let mut fleet = SentinelFleet::builder();
                for (name, value) in options {
                    fleet = fleet.option(name, value);
                }
                Self::Sentinel(fleet.start().await)
            }
            Servers::Cluster => {
                let mut fleet = ClusterFleet::builder();
                for (name, value) in options {
                    fleet = fleet.option(name, value);
                }
                Self::Cluster(fleet.start().await)
            }
            Servers::Redlock => {
                let test = "torture of clocks";
                let fleet = RedlockFleet::with_clocks(test).await;
                Self::Redlock(match fleet {
                    Some(fleet) => fleet,
                    None => RedlockFleet::start().await,
                })
            }
        }
    }

    pub(crate) fn url(&self) -> String {
        match self {
            Self::One(server) => server.url(),
            Self::Sentinel(fleet) => fleet.url(),
            Self::Cluster(fleet) => fleet.url(),
            Self::Redlock(fleet) => fleet.place(),
        }
    }

    /// Those of which a majority decides.
    pub(super) fn independent(&mut self) -> &mut RedlockFleet {
        match self {
            Self::Redlock(fleet) => fleet,
            _ => panic!("one server decides"),
        }
    }

    /// The same for a client that is told the way by that node first: it does not believe the old master.
    pub(crate) fn url_through(&self, node: usize) -> String {
        match self {
            Self::Cluster(fleet) => format!("redis+cluster://{}", fleet.nodes()[node].addr()),
            Self::One(_) | Self::Sentinel(_) | Self::Redlock(_) => self.url(),
        }
    }

    /// The masters and replicas.
    pub(super) fn nodes(&self) -> &[RedisServer] {
        match self {
            Self::One(server) => std::slice::from_ref(server),
            Self::Sentinel(fleet) => fleet.nodes(),
            Self::Cluster(fleet) => fleet.nodes(),
            Self::Redlock(fleet) => &fleet.servers,
        }
    }

    fn node_mut(&mut self, number: usize) -> &mut RedisServer {
        match self {
            Self::One(server) => server,
            Self::Sentinel(fleet) => fleet.node_mut(number),
            Self::Cluster(fleet) => fleet.node_mut(number),
            Self::Redlock(fleet) => &mut fleet.servers[number],
        }
    }

    /// The master of a server's key.
    pub(super) async fn master_of(&self, key: &str) -> &RedisServer {
        let number = match self {
            Self::One(_) | Self::Redlock(_) => 0,
            Self::Sentinel(fleet) => fleet.master().await,
            Self::Cluster(fleet) => fleet.master_of(key).await,
        };
        &self.nodes()[number]
    }

    /// One of the masters.
    pub(super) async fn any_master(&self) -> &RedisServer {
        &self.nodes()[self.any().await]
    }

    /// The number of one of the masters.
    pub(crate) async fn any(&self) -> usize {
        match self {
            Self::One(_) | Self::Redlock(_) => 0,
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

    /// A replica takes the place of a master, which is struck before and comes back as a replica.
    pub(super) async fn fail_over(&mut self) -> &'static str {
        let (name, blow) = Blow::ALL[fastrand::usize(..Blow::ALL.len())];
        let old = self.any().await;
        self.strike(blow, old).await;
        self.replace(old).await;
        if blow != Blow::None {
            // One that stands still or is cut off still believes to be a master then.
            sleep(about_a_lease()).await;
        }
        self.mend(blow, old).await;
        name
    }

    /// Does that to a node.
    pub(crate) async fn strike(&mut self, blow: Blow, node: usize) {
        match blow {
            Blow::None => {}
            Blow::Kill => self.node_mut(node).kill().await,
            Blow::Stop => self.nodes()[node].stop(),
            Blow::CutOff => self.cut_off(node).await,
        }
    }

    /// Undoes it, and waits until all is well.
    pub(crate) async fn mend(&mut self, blow: Blow, node: usize) {
        match blow {
            Blow::None => {}
            Blow::Kill => self.node_mut(node).restart().await,
            Blow::Stop => self.nodes()[node].resume(),
            Blow::CutOff => self.rejoin(node).await,
        }
        self.settled().await;
    }

    /// Puts a replica in the place of a master.
    pub(crate) async fn replace(&self, master: usize) -> usize {
        match self {
            Self::One(_) | Self::Redlock(_) => panic!("such a server has no replica"),
            Self::Sentinel(fleet) => fleet.failover().await,
            Self::Cluster(fleet) => fleet.take_over(master).await,
        }
    }

    async fn cut_off(&self, node: usize) {
        match self {
            Self::One(_) | Self::Redlock(_) => panic!("such a server has no peers"),
            Self::Sentinel(fleet) => fleet.cut_off(node).await,
            Self::Cluster(fleet) => fleet.cut_off(node).await,
        }
    }

    async fn rejoin(&self, node: usize) {
        match self {
            Self::One(_) | Self::Redlock(_) => {}
            Self::Sentinel(fleet) => fleet.rejoin(node).await,
            Self::Cluster(fleet) => fleet.rejoin(node).await,
        }
    }

    async fn settled(&self) {
        match self {
            Self::One(_) | Self::Redlock(_) => {}
            Self::Sentinel(fleet) => fleet.settled().await,
            Self::Cluster(fleet) => fleet.settled().await,
        }
    }
}
