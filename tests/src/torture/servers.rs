//! The stores that are tortured, and the facts in which they differ.

use std::{net::SocketAddr, time::Duration};

use super::TTL;
use crate::server::SentinelFleet;

/// The shortest lease that etcd grants; sessions of ZooKeeper are as long.
const SESSION: Duration = Duration::from_secs(2);
/// How long a leader's peers may need to elect another one, on a busy machine.
const ELECTION: Duration = Duration::from_secs(4);
/// How long the processes' wait for a deadline's poll is at the least: what the runtime documents as the margin.
const LEAST_MARGIN: Duration = Duration::from_millis(50);

/// Which servers there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Servers {
    /// One.
    Redis,
    /// One, whose locks are those of the setnx protocol.
    Setnx,
    /// A master with replicas and sentinels.
    Sentinel,
    /// Masters with a replica each.
    Cluster,
    /// Five that know nothing of each other.
    Redlock,
    /// Three that elect a leader.
    ZooKeeper,
    /// Three members that elect a leader.
    Etcd,
    /// A primary with a standby, which takes its place when it is told to.
    Postgres,
    /// One.
    Mysql,
}

impl Servers {
    /// All of them, by the names that the command line knows.
    pub const ALL: [(&str, Self); 9] = [
        ("redis", Self::Redis),
        ("setnx", Self::Setnx),
        ("sentinel", Self::Sentinel),
        ("cluster", Self::Cluster),
        ("redlock", Self::Redlock),
        ("zookeeper", Self::ZooKeeper),
        ("etcd", Self::Etcd),
        ("postgres", Self::Postgres),
        ("mysql", Self::Mysql),
    ];

    /// Those of this name.
    pub fn named(name: &str) -> Option<Self> {
        let known = Self::ALL.iter().find(|(known, _)| *known == name);
        known.map(|(_, servers)| *servers)
    }

    /// The name that the command line knows.
    pub fn name(self) -> &'static str {
        let known = Self::ALL.iter().find(|(_, servers)| *servers == self);
        known.expect("all have names").0
    }

    /// Whether a lock is handed to several of one connection at once.
    pub fn chain(self) -> bool {
        matches!(self, Self::Redis | Self::Sentinel | Self::Cluster)
    }

    /// Whether neighbours in a queue are handed the lock quickly enough that many tasks of a process want one lock.
    pub(super) fn hot(self) -> bool {
        self.chain() || self.keeps_rows()
    }

    /// Whether locks are rows of a database, which users' own transactions change too.
    pub(super) fn keeps_rows(self) -> bool {
        matches!(self, Self::Postgres | Self::Mysql)
    }

    /// Whether later holders have larger fences.
    pub(super) fn fences(self) -> bool {
        self != Self::Setnx
    }

    /// Whether other servers replace one that fails.
    pub(super) fn fails_over(self) -> bool {
        matches!(self, Self::Sentinel | Self::Cluster) || self.elects()
    }

    /// Whether the servers elect a leader, and lose nothing thereby.
    pub(super) fn elects(self) -> bool {
        matches!(self, Self::ZooKeeper | Self::Etcd)
    }

    /// How many replicas each master has.
    pub fn replicas(self) -> usize {
        match self {
            Self::Sentinel => 2,
            Self::Cluster | Self::Postgres => 1,
            _ => 0,
        }
    }

    /// The lease of every lock.
    pub(super) fn ttl(self) -> Duration {
        if self.elects() { SESSION } else { TTL }
    }

    /// The longest poll of a body that no other holder's poll may overlap.
    pub(super) fn margin(self) -> Duration {
        (self.ttl() / 50).max(LEAST_MARGIN).min(self.ttl() / 4)
    }

    /// How soon a key goes on after a fault: what is left of a lease, and a second. Servers that elect a leader give
    /// every lease its full time again.
    pub(super) fn recovery(self) -> Duration {
        if self.elects() {
            2 * SESSION + ELECTION
        } else if self == Self::Mysql {
            // A waiter has a second to ask, and may be suspended meanwhile: see docs/mysql.md#waiting.
            TTL + Duration::from_secs(2)
        } else {
            TTL + Duration::from_secs(1)
        }
    }

    /// How many grants a minute has at the least, if it shows anything.
    pub(super) fn grants(self) -> f64 {
        match self {
            Self::Redis | Self::Sentinel | Self::Cluster | Self::Redlock => 10_000.0,
            Self::Setnx | Self::Postgres | Self::Mysql => 2_000.0,
            Self::ZooKeeper | Self::Etcd => 500.0,
        }
    }

    /// The URL of servers that are reached at these addresses.
    pub(super) fn url(self, addresses: &[SocketAddr]) -> String {
        let (start, named, path) = match self {
            Self::Redis => ("redis://", addresses, ""),
            Self::Setnx => ("redis+setnx://", addresses, ""),
            Self::Sentinel => {
                let (_, sentinels) = addresses.split_at(SentinelFleet::NODES);
                ("redis+sentinel://", sentinels, SentinelFleet::PATH)
            }
            Self::Cluster => ("redis+cluster://", addresses, ""),
            Self::Redlock => ("redis+redlock://", addresses, ""),
            Self::ZooKeeper => ("zookeeper://", addresses, ""),
            Self::Etcd => ("etcd://", addresses, ""),
            Self::Postgres => ("postgres://postgres@", addresses, "/postgres"),
            Self::Mysql => ("mysql://root@", addresses, "/shop"),
        };
        let hosts: Vec<_> = named.iter().map(ToString::to_string).collect();
        format!("{start}{}{path}", hosts.join(","))
    }
}
