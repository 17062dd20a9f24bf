//! What is done to the processes, the server and the network, and how it is undone.

use std::time::Duration;

use tokio::time::sleep;

use super::{
    HOT_KEY, LONG, SHORT, Servers, TTL, check::Promises, clock, crew::Crew, cut_off, limits,
    lock_name, majority, messages, stale,
};
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
    /// A leader is cut off together with some of its clients from all other servers and clients.
    CutOff(Protection),
    /// Those that tell who leads, or followers, are slow or have old news.
    Stale,
    /// The clocks of all servers step back, and forth while nobody has a lock.
    Clock,
    /// Connections break at a certain message.
    Messages,
    /// Servers and what is between them limit streams, buffers and the size of packets.
    Limits,
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
    pub const ALL: [(&str, Self); 17] = [
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
        ("cutoff", Self::CutOff(Protection::Quarantine)),
        ("cutoff-replicas", Self::CutOff(Protection::Replicas)),
        ("stale", Self::Stale),
        ("clock", Self::Clock),
        ("messages", Self::Messages),
        ("limits", Self::Limits),
    ];

    /// Whether it is one of the few that run at every change.
    pub fn is_standard(self) -> bool {
        !matches!(
            self,
            Self::CutOff(_) | Self::Stale | Self::Clock | Self::Messages | Self::Limits
        )
    }

    /// Whether such servers can be tortured with it.
    pub fn suits(self, servers: Servers) -> bool {
        match self {
            Self::Clients | Self::Messages => true,
            Self::Minority | Self::Clocks | Self::Majority => servers == Servers::Redlock,
            Self::Failover(_) => matches!(servers, Servers::Sentinel | Servers::Cluster),
            Self::Network => !matches!(
                servers,
                Servers::Sentinel | Servers::Cluster | Servers::Redlock
            ),
            Self::Server => servers != Servers::Redlock,
            Self::Connections | Self::Keys => servers.chain(),
            Self::CutOff(Protection::Replicas) => servers.replicas() > 0,
            Self::CutOff(_) | Self::Stale => servers.fails_over() || servers == Servers::Redlock,
            Self::Clock => servers.chain() || servers == Servers::Redlock,
            Self::Limits => !matches!(servers, Servers::Setnx | Servers::Redlock),
        }
    }

    /// Whether it needs a proxy to each server.
    pub(super) fn needs_proxies(self) -> bool {
        matches!(
            self,
            Self::CutOff(_) | Self::Stale | Self::Messages | Self::Limits
        )
    }

    /// Whether it does something to the ways between processes and servers.
    pub(super) fn needs_ways(self) -> bool {
        self.needs_proxies() || self == Self::Network
    }

    /// How many tasks more each process has.
    pub(super) fn more_tasks(self) -> usize {
        if self == Self::Limits {
            limits::TASKS
        } else {
            0
        }
    }

    /// What servers of Redis are configured with beside what protects them.
    pub(super) fn limits(self) -> &'static [(&'static str, &'static str)] {
        if self == Self::Limits {
            limits::OPTIONS
        } else {
            &[]
        }
    }

    /// What keeps its locks.
    pub(super) fn protection(self, servers: Servers) -> Protection {
        match self {
            Self::Failover(protection) => protection,
            _ if servers == Servers::Redlock => Protection::Quarantine,
            Self::CutOff(protection) if servers.replicas() > 0 => protection,
            Self::Stale if servers.replicas() > 0 => Protection::Quarantine,
            _ => Protection::None,
        }
    }

    /// How many grants a minute has at the least, if it shows anything.
    pub fn grants(self, servers: Servers) -> f64 {
        // Much of the time of the others there is nobody who grants anything.
        servers.grants() * if self.is_standard() { 1.0 } else { 0.1 }
    }

    /// How often a lock is passed on in a process in a minute at the least.
    pub fn hand_overs(self, servers: Servers) -> f64 {
        if servers.chain() && self.is_standard() {
            500.0
        } else {
            0.0
        }
    }

    /// How many locks are lost by it in a minute at the least, if it shows anything.
    pub fn losses(self, servers: Servers) -> f64 {
        match self {
            // Most leases outlive a failover.
            Self::Clocks
            | Self::Failover(_)
            | Self::Stale
            | Self::Clock
            | Self::Messages
            | Self::Limits => 0.0,
            Self::CutOff(_) => 1.0,
            _ if servers.elects() => 1.0,
            // Most bodies end before they hear of it; of a minority only those hear who were stopped.
            Self::Keys | Self::Minority => 5.0,
            // It strikes one of three masters, and few of its leases.
            Self::Server | Self::Connections if servers == Servers::Cluster => 2.0,
            _ => 20.0,
        }
    }

    /// What holds in spite of it.
    pub(super) fn promises(self, servers: Servers) -> Promises {
        // Where somebody else meddles with the keys, bodies may overlap, and one that a lock is passed on to in its
        // process may be entered after a later one elsewhere.
        let kept = !matches!(self, Self::Keys | Self::Failover(Protection::None));
        Promises {
            exclusive: kept,
            fences: kept && servers.fences(),
            margin: servers.margin(),
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
            Self::Failover(_) => crew.store.redis().fail_over().await,
            Self::Minority => majority::minority(crew).await,
            Self::Clocks => majority::clocks(crew).await,
            Self::Majority => majority::majority(crew).await,
            Self::CutOff(_) => cut_off::strike(crew).await,
            Self::Stale => stale::strike(crew).await,
            Self::Clock => clock::strike(crew).await,
            Self::Messages => messages::strike(crew).await,
            Self::Limits => limits::strike(crew).await,
        }
    }
}

/// Longer than a lease lasts without a renewal, most of the time.
pub(super) fn about_a_lease() -> Duration {
    about(TTL)
}

/// Longer than that, most of the time.
pub(super) fn about(time: Duration) -> Duration {
    time.mul_f64(0.8 + fastrand::f64())
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
    sleep(about(crew.servers.ttl())).await;
    for number in [first, second] {
        crew.workers[number].resume();
    }
    "stopped"
}

async fn server(crew: &mut Crew) -> &'static str {
    let time = about(crew.servers.ttl());
    let fleet = crew.store.fleet();
    let server = fleet.leader().await;
    fleet.stop(server);
    sleep(time).await;
    fleet.resume(server);
    "server stopped"
}

async fn network(crew: &mut Crew) -> &'static str {
    let way = fastrand::usize(..crew.ways.len());
    // A way that is closed strikes half of the processes: it has to last.
    let time = crew.servers.ttl().mul_f64(1.2 + 0.6 * fastrand::f64());
    crew.ways[way].strike(time).await
}

async fn connections(crew: &mut Crew) -> &'static str {
    let server = crew.store.redis().any_master().await;
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
        HOT_KEY
    } else {
        fastrand::usize(..LONG + SHORT)
    };
    let name = lock_name(number);
    let key = RedisServer::owner_key(&name);
    let server = crew.store.redis().master_of(&key).await;
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
    let server = crew.store.redis().master_of(&key).await;
    server.cmd(&["DEL", &key]).await;
    "stolen"
}
