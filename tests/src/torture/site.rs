//! The servers that keep the tortured locks: one, many that fail over or shard, or independent ones.

use tokio::time::sleep;

use super::{Servers, fault::about_a_lease};
use crate::{ClusterFleet, RedisServer, RedlockFleet, SentinelFleet, server::Clocks};

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

/// How servers are started.
#[derive(Debug, Default)]
pub(super) struct Starting<'a> {
    /// What those with replicas, or one alone, are configured with.
    pub(super) options: &'a [(&'static str, &'static str)],
    /// Whether their clocks can be moved, where that is possible.
    pub(super) with_clocks: bool,
}

impl Site {
    /// Starts them, those that fail over with these options.
    pub(crate) async fn start(servers: Servers, options: &[(&'static str, &'static str)]) -> Self {
        let with_clocks = false;
        let how = Starting {
            options,
            with_clocks,
        };
        Self::start_with(servers, how).await
    }

    /// Starts them so.
    pub(super) async fn start_with(servers: Servers, how: Starting<'_>) -> Self {
        const TEST: &str = "torture of clocks";
        let clocks = |count| how.with_clocks.then(|| Clocks::new(count, TEST)).flatten();
        match servers {
            Servers::Redis | Servers::Setnx => {
                let options = how.options.iter();
                let options = options.map(|(name, value)| format!("{name} {value}\n"));
                let mut server = RedisServer::builder().config(options.collect());
                if let Some(clocks) = clocks(1) {
                    server = server.clock(&clocks.into(), 0);
                }
                Self::One(Box::new(server.start().await))
            }
            Servers::Sentinel => {
                let mut fleet = SentinelFleet::builder();
                for (name, value) in how.options {
                    fleet = fleet.option(name, value);
                }
                if let Some(clocks) = clocks(SentinelFleet::NODES) {
                    fleet = fleet.clocks(clocks);
                }
                Self::Sentinel(fleet.start().await)
            }
            Servers::Cluster => {
                let mut fleet = ClusterFleet::builder();
                for (name, value) in how.options {
                    fleet = fleet.option(name, value);
                }
                if let Some(clocks) = clocks(ClusterFleet::NODES) {
                    fleet = fleet.clocks(clocks);
                }
                Self::Cluster(fleet.start().await)
            }
            Servers::Redlock => Self::Redlock(if how.with_clocks {
                match RedlockFleet::with_clocks(TEST).await {
                    Some(fleet) => fleet,
                    None => RedlockFleet::start().await,
                }
            } else {
                RedlockFleet::start().await
            }),
            Servers::ZooKeeper | Servers::Etcd | Servers::Postgres | Servers::Mysql => {
                panic!("these are no servers of Redis")
            }
        }
    }

    pub(crate) fn url(&self) -> String {
        match self {
            Self::One(server) => server.url(),
            Self::Sentinel(fleet) => fleet.url(),
            Self::Cluster(fleet) => fleet.url(),
            Self::Redlock(fleet) => fleet.bare_url(),
        }
    }

    /// Those of which a majority decides.
    pub(super) fn independent(&mut self) -> &mut RedlockFleet {
        match self {
            Self::Redlock(fleet) => fleet,
            _ => panic!("one server decides"),
        }
    }

    /// The same for a client that asks that node first: it does not believe the old master.
    pub(crate) fn url_through(&self, node: usize) -> String {
        match self {
            Self::Cluster(fleet) => format!("redis+cluster://{}", fleet.nodes()[node].addr()),
            Self::One(_) | Self::Sentinel(_) | Self::Redlock(_) => self.url(),
        }
    }

    /// The masters and replicas, and then the sentinels.
    pub(super) fn servers(&self) -> impl Iterator<Item = &RedisServer> {
        let sentinels = match self {
            Self::Sentinel(fleet) => fleet.sentinels(),
            _ => &[],
        };
        self.nodes().iter().chain(sentinels)
    }

    /// One of all of them.
    pub(super) fn server(&self, number: usize) -> &RedisServer {
        self.servers().nth(number).expect("a server")
    }

    /// Whether it is one of several that copy each other.
    pub(super) fn has_peers(&self, server: usize) -> bool {
        let alone = matches!(self, Self::One(_) | Self::Redlock(_));
        !alone && server < self.nodes().len()
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

    /// A replica replaces a master, which is struck before and comes back as a replica.
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

    /// Replaces a master by a replica.
    pub(crate) async fn replace(&self, master: usize) -> usize {
        match self {
            Self::One(_) | Self::Redlock(_) => panic!("such a server has no replica"),
            Self::Sentinel(fleet) => fleet.failover().await,
            Self::Cluster(fleet) => fleet.take_over(master).await,
        }
    }

    pub(super) async fn cut_off(&self, node: usize) {
        match self {
            Self::One(_) | Self::Redlock(_) => panic!("such a server has no peers"),
            Self::Sentinel(fleet) => fleet.cut_off(node).await,
            Self::Cluster(fleet) => fleet.cut_off(node).await,
        }
    }

    pub(super) async fn rejoin(&self, node: usize) {
        match self {
            Self::One(_) | Self::Redlock(_) => {}
            Self::Sentinel(fleet) => fleet.rejoin(node).await,
            Self::Cluster(fleet) => fleet.rejoin(node).await,
        }
    }

    pub(super) async fn settled(&self) {
        match self {
            Self::One(_) | Self::Redlock(_) => {}
            Self::Sentinel(fleet) => fleet.settled().await,
            Self::Cluster(fleet) => fleet.settled().await,
        }
    }
}
