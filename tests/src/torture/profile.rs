//! The profiles of faults: which stores each is for, what it needs, and what holds in spite of it.

use std::time::Duration;

use super::{Servers, check::Promises, limits};

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
    /// Keys are deleted and stolen, and locks are revoked.
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
    /// Those that say who leads, or followers, are slow or out of date.
    Stale,
    /// The clocks of all servers step back, and forth while nobody has a lock.
    Clock,
    /// The clock of the server jumps forward past all leases; beside the usual bodies, transactions assert their fences.
    ClockForward,
    /// Connections break at a certain message.
    Messages,
    /// Servers and what is between them limit streams, buffers and the size of packets.
    Limits,
    /// A pooler in front of the server restarts and stops.
    Pooler,
    /// The disk of the server is full.
    FullDisk,
    /// Processes, servers, ways and messages, while locks are handed on as tickets and nothing else.
    Tickets,
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
    pub const ALL: [(&str, Self); 21] = [
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
        ("clock-forward", Self::ClockForward),
        ("messages", Self::Messages),
        ("limits", Self::Limits),
        ("pooler", Self::Pooler),
        ("full-disk", Self::FullDisk),
        ("tickets", Self::Tickets),
    ];

    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        let found = Self::ALL.iter().find(|(known, _)| *known == name);
        found.map(|(_, profile)| *profile)
    }

    /// What it is called.
    pub fn name(self) -> &'static str {
        let found = Self::ALL.iter().find(|(_, profile)| *profile == self);
        found.expect("all have names").0
    }

    /// Whether it is one of the few that run at every change.
    pub fn is_standard(self) -> bool {
        !matches!(
            self,
            Self::CutOff(_)
                | Self::Stale
                | Self::Clock
                | Self::ClockForward
                | Self::Messages
                | Self::Limits
                | Self::Pooler
                | Self::FullDisk
                | Self::Tickets
        )
    }

    /// Whether such servers can be tortured with it.
    pub fn suits(self, servers: Servers) -> bool {
        match self {
            Self::Clients | Self::Messages => true,
            Self::Minority | Self::Clocks | Self::Majority => servers == Servers::Redlock,
            Self::Failover(_) => matches!(
                servers,
                Servers::Sentinel | Servers::Cluster | Servers::Postgres
            ),
            Self::Network => !matches!(
                servers,
                Servers::Sentinel | Servers::Cluster | Servers::Redlock
            ),
            Self::Server => servers != Servers::Redlock,
            Self::Connections => servers.hot(),
            Self::Keys => servers.chain(),
            Self::CutOff(Protection::Replicas) => servers.fails_over() && servers.replicas() > 0,
            Self::CutOff(_) | Self::Stale => servers.fails_over() || servers == Servers::Redlock,
            Self::Clock => servers.chain() || servers == Servers::Redlock || servers.keeps_rows(),
            Self::Limits => !matches!(servers, Servers::Setnx | Servers::Redlock),
            Self::ClockForward | Self::FullDisk => servers.keeps_rows(),
            Self::Pooler => servers == Servers::Postgres,
            Self::Tickets => !matches!(servers, Servers::Setnx | Servers::Redlock),
        }
    }

    /// Whether it needs a proxy to each server.
    pub(super) fn needs_proxies(self) -> bool {
        matches!(
            self,
            Self::CutOff(_) | Self::Stale | Self::Messages | Self::Limits | Self::Tickets
        )
    }

    /// Whether it does something to the ways between processes and servers.
    pub(super) fn needs_ways(self) -> bool {
        self.needs_proxies() || self == Self::Network
    }

    /// Whether the model can follow a server: with a clock that moves as time does, and room for a monitor in its buffers.
    pub(super) fn is_followed(self) -> bool {
        !matches!(self, Self::Clock | Self::Limits)
    }

    /// Whether locks may be held back after a release. A clock that steps back by hours holds them back for as long.
    pub(super) fn has_cooldowns(self) -> bool {
        self != Self::Clock
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
    pub(super) fn grants(self, servers: Servers) -> f64 {
        // Much of the time of the others there is nobody who grants anything.
        servers.grants() * if self.is_standard() { 1.0 } else { 0.1 }
    }

    /// How often a lock is handed over within a process in a minute at the least.
    pub(super) fn hand_overs(self, servers: Servers) -> f64 {
        if servers.chain() && self.is_standard() {
            500.0
        } else {
            0.0
        }
    }

    /// How many tickets are adopted in a minute at the least.
    pub(super) fn adoptions(self, servers: Servers) -> f64 {
        if self == Self::Tickets {
            self.grants(servers) / 5.0
        } else {
            0.0
        }
    }

    /// Whether a server may forget that a ticket was adopted, never have known the ticket, or end its time early.
    fn forgets_tickets(self, servers: Servers) -> bool {
        let fails_over = matches!(self, Self::Failover(_) | Self::CutOff(_) | Self::Stale);
        self == Self::ClockForward || !servers.elects() && fails_over
    }

    /// How many locks are lost by it in a minute at the least, if it shows anything.
    pub(super) fn losses(self, servers: Servers) -> f64 {
        match self {
            // Most leases outlive a failover, and all outlive a minority: only processes that were stopped lose them.
            Self::Clocks
            | Self::Minority
            | Self::Failover(_)
            | Self::Stale
            | Self::Clock
            | Self::Messages
            | Self::Limits
            | Self::Pooler
            | Self::FullDisk
            | Self::Tickets => 0.0,
            Self::CutOff(_) => 1.0,
            _ if servers.elects() => 1.0,
            // Most bodies end before they hear of it.
            Self::Keys => 5.0,
            // Most leases outlive what happens to a connection.
            Self::Connections if servers.keeps_rows() => 2.0,
            // It strikes one of three masters, and few of its leases.
            Self::Server | Self::Connections if servers == Servers::Cluster => 2.0,
            _ => 20.0,
        }
    }

    /// What holds in spite of it.
    pub(super) fn promises(self, servers: Servers) -> Promises {
        // Where somebody else meddles with the keys, or leases end early, bodies may overlap, and one that is handed a
        // lock within its process may enter after a later one elsewhere.
        let kept = !matches!(
            self,
            Self::Keys | Self::Failover(Protection::None) | Self::ClockForward
        );
        Promises {
            exclusive: kept,
            fences: kept && servers.fences(),
            margin: servers.margin(),
            ttl: servers.ttl(),
            tickets: !self.forgets_tickets(servers),
            // The clocks of those that elect a leader are not compared.
            expiry: !servers.elects() && self != Self::Clock,
        }
    }

    /// The pause after a fault that has lasted so long.
    pub(super) fn pause(self, lasted: Duration) -> Duration {
        let usual = Duration::from_millis(fastrand::u64(50..300));
        match self {
            // Little is granted until the old master is a replica.
            Self::Failover(_) => usual.max(lasted.mul_f64(fastrand::f64())),
            _ => usual,
        }
    }
}
