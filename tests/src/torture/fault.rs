//! What is done to the processes, the server and the network, and how it is undone.

use std::time::Duration;

use tokio::time::sleep;

use super::{KEYS, TTL, check::Promises, crew::Crew, lock_name, majority, site::Servers};
use crate::RedisServer;

/// A kind of fault, tortured with for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// Processes are stopped past their leases, and killed.
    Clients,
    /// A server is stopped.
    Server,
    /// The network loses what goes one way or both ways, and breaks connections.
    Network,
    /// Scripts, subscriptions and connections are dropped, a server pauses.
    Connections,
    /// Keys are deleted and stolen, and locks taken away by force.
    Keys,
    /// Masters are replaced that are killed, stopped, cut off or well; locks are protected against it, or not.
    Failover(Protection),
    /// Two of five independent servers stop, or start again empty.
    Minority,
    /// The clocks of two of them jump.
    Clocks,
    /// Three of them stop, or start again empty.
    Majority,
}

/// What keeps a lock from being granted twice where a master has been replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// Nothing: what has not reached the replicas is lost.
    None,
    /// A grant counts when all replicas have it.
    Replicas,
    /// A new master grants nothing until all leases have ended that it may not know of; the old one, without its
    /// replicas, grants nothing any more.
    Quarantine,
}

impl Protection {
    /// What the masters are configured with.
    pub(crate) fn options(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::None | Self::Replicas => &[],
            Self::Quarantine => &[
                ("min-replicas-to-write", "1"),
                ("min-replicas-max-lag", "1"),
            ],
        }
    }

    /// What the URL of the servers says of locks, of which none has a longer lease than that.
    pub(crate) fn query(self, servers: Servers, longest: Duration) -> String {
        match self {
            Self::None => String::new(),
            Self::Replicas => format!("?replicas={}", servers.replicas()),
            Self::Quarantine => {
                let longest = longest.as_millis();
                format!("?quarantine={longest}ms&ttl={longest}ms")
            }
        }
    }
}

impl Profile {
    /// All of them, by the names that the command line knows.
    pub const ALL: [(&str, Self); 11] = [
        ("clients", Self::Clients),
        ("server", Self::Server),
        ("network", Self::Network),
        ("connections", Self::Connections),
        ("keys", Self::Keys),
        ("failover", Self::Failover(Protection::None)),
        ("failover-replicas", Self::Failover(Protection::Replicas)),
        (
            "failover-quarantine",
            Self::Failover(Protection::Quarantine),
        ),
        ("minority", Self::Minority),
        ("clocks", Self::Clocks),
        ("majority", Self::Majority),
    ];

    /// Whether such servers can be tortured with it.
    pub fn suits(self, servers: Servers) -> bool {
        match self {
            Self::Clients => true,
            Self::Minority | Self::Clocks | Self::Majority => servers == Servers::Redlock,
            Self::Failover(_) => matches!(servers, Servers::Sentinel | Servers::Cluster),
            Self::Network => servers == Servers::Redis,
            Self::Server | Self::Connections | Self::Keys => servers != Servers::Redlock,
        }
    }

    /// What keeps its locks.
    pub(super) fn protection(self, servers: Servers) -> Protection {
        match self {
            Self::Failover(protection) => protection,
            _ if servers == Servers::Redlock => Protection::Quarantine,
            _ => Protection::None,
        }
    }

    /// How many locks are lost by it in a minute at the least, if it shows anything.
    pub fn losses(self, servers: Servers) -> f64 {
        match self {
            // Most leases outlive a failover.
            Self::Clocks | Self::Failover(_) => 0.0,
            // Most bodies end before they hear of it; of a minority only those hear who were stopped.
            Self::Keys | Self::Minority => 5.0,
            // It strikes one of three masters, and few of its leases.
            Self::Server | Self::Connections if servers == Servers::Cluster => 2.0,
            _ => 20.0,
        }
    }

    /// What holds in spite of it.
    pub(super) fn promises(self) -> Promises {
        // Where somebody else meddles with the keys, bodies may overlap, and one that a lock is passed on to in its
        // process may be entered after a later one elsewhere.
        let kept = !matches!(self, Self::Keys | Self::Failover(Protection::None));
        Promises {
            exclusive: kept,
            fences: kept,
        }
    }

    /// How long nothing is done behind a fault that has lasted so long.
    pub(super) fn rest(self, lasted: Duration) -> Duration {
        let usual = Duration::from_millis(fastrand::u64(50..300));
        match self {
            // Little is granted until the old master is a replica.
            Self::Failover(_) => usual.max(lasted.mul_f64(fastrand::f64())),
            _ => usual,
        }
    }

    /// Does one fault, undoes it, and says what it was.
    pub(super) async fn strike(self, crew: &mut Crew) -> &'static str {
        match self {
            Self::Clients => clients(crew).await,
            Self::Server => server(crew).await,
            Self::Network => network(crew).await,
            Self::Connections => connections(crew).await,
            Self::Keys => keys(crew).await,
            Self::Failover(_) => crew.site.fail_over().await,
            Self::Minority => majority::minority(crew).await,
            Self::Clocks => majority::clocks(crew).await,
            Self::Majority => majority::majority(crew).await,
        }
    }
}

/// Longer than a lease lasts without a renewal, most of the time.
pub(super) fn about_a_lease() -> Duration {
    TTL.mul_f64(0.8 + fastrand::f64())
}

pub(super) async fn clients(crew: &mut Crew) -> &'static str {
    let first = fastrand::usize(..crew.workers.len());
    if fastrand::u8(..4) == 0 {
        crew.replace(first).await;
        return "killed";
    }
    let second = (first + 1) % crew.workers.len();
    for number in [first, second] {
        crew.workers[number].pause();
    }
    sleep(about_a_lease()).await;
    for number in [first, second] {
        crew.workers[number].resume();
    }
    "stopped"
}

async fn server(crew: &mut Crew) -> &'static str {
    let server = crew.site.any_master().await;
    server.stop();
    sleep(about_a_lease()).await;
    server.resume();
    "server stopped"
}

async fn network(crew: &mut Crew) -> &'static str {
    let way = fastrand::usize(..crew.ways.len());
    // A way that is closed strikes half of the processes: it has to last.
    let time = TTL.mul_f64(1.2 + 0.6 * fastrand::f64());
    crew.ways[way].strike(time).await
}

async fn connections(crew: &mut Crew) -> &'static str {
    let server = crew.site.any_master().await;
    match fastrand::u8(..4) {
        0 => {
            server.cmd(&["SCRIPT", "FLUSH"]).await;
            "scripts flushed"
        }
        1 => {
            server.kill_all_clients().await;
            "connections killed"
        }
        2 => {
            let kill = ["CLIENT", "KILL", "TYPE", "pubsub"];
            server.cmd(&kill).await;
            "subscriptions killed"
        }
        _ => {
            let pause = about_a_lease();
            let millis = pause.as_millis().to_string();
            server.cmd(&["CLIENT", "PAUSE", &millis]).await;
            sleep(pause).await;
            "server paused"
        }
    }
}

async fn keys(crew: &mut Crew) -> &'static str {
    // Every other time the one that is passed on.
    let number = if fastrand::bool() {
        KEYS - 1
    } else {
        fastrand::usize(..KEYS)
    };
    let name = lock_name(number);
    let key = RedisServer::owner_key(&name);
    let server = crew.site.master_of(&key).await;
    match fastrand::u8(..4) {
        0 | 1 => {
            server.cmd(&["DEL", &key]).await;
            sleep(Duration::from_millis(100)).await;
            return "deleted";
        }
        2 => {
            crew.force(&name).await;
            return "forced";
        }
        _ => {}
    }
    let steal = ["SET", &key, "thief", "PX", "60000"];
    server.cmd(&steal).await;
    // Nobody may delete what is not theirs.
    for _ in 0..20 {
        sleep(Duration::from_millis(10)).await;
        crew.check_thief(&key).await;
    }
    let server = crew.site.master_of(&key).await;
    server.cmd(&["DEL", &key]).await;
    "stolen"
}
