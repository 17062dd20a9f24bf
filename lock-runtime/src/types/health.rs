//! Whether the store can be reached, for a readiness probe.

use std::fmt;
use std::time::{Duration, SystemTime};

#[cfg(feature = "serde")]
use crate::types::units;

/// How a manager reaches its server; see
/// [`LockManager::health`](crate::LockManager::health).
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Health {
    /// Whether the server has answered just now; of several servers, whether one has that a lock
    /// can be asked of, or a majority where that decides.
    pub connected: bool,
    /// Whether locks can be granted at the moment: at least those of one master of a cluster, or
    /// where a majority of servers agrees. A readiness probe decides by this. It does not tell
    /// whether the [replicas](crate::LockConfig::replicas) of a master confirm grants.
    pub grants: bool,
    /// How many of `servers` have answered.
    pub reachable: usize,
    /// How many servers decide about locks: the masters of a cluster, the servers of Redlock,
    /// or one. ZooKeeper and etcd count as one, which answers if a majority of its servers is up.
    pub servers: usize,
    /// How long its answer took.
    #[cfg_attr(
        feature = "serde",
        serde(rename = "round_trip_us", serialize_with = "units::micros")
    )]
    pub round_trip: Option<Duration>,
    /// Until when the server grants nothing, by the clock of this machine, where it may have
    /// forgotten locks; see [`LockConfig::quarantine`](crate::LockConfig::quarantine). It
    /// answers and renews meanwhile.
    #[cfg_attr(
        feature = "serde",
        serde(
            rename = "quarantined_until_unix_ms",
            serialize_with = "units::unix_millis"
        )
    )]
    pub quarantined_until: Option<SystemTime>,
    /// What went wrong last, which may be over.
    pub last_error: Option<LastError>,
}

/// What went wrong with a connection, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct LastError {
    /// By the clock of this machine.
    #[cfg_attr(
        feature = "serde",
        serde(rename = "at_unix_ms", serialize_with = "units::unix_millis")
    )]
    pub at: SystemTime,
    /// What the server or the connection said.
    pub message: Box<str>,
}

impl Health {
    /// The server has answered in this time.
    pub(crate) fn reached(round_trip: Duration) -> Self {
        Self {
            connected: true,
            grants: true,
            reachable: 1,
            servers: 1,
            round_trip: Some(round_trip),
            quarantined_until: None,
            last_error: None,
        }
    }

    /// There was no answer.
    pub(crate) fn unreachable(last_error: LastError) -> Self {
        Self {
            connected: false,
            grants: false,
            reachable: 0,
            servers: 1,
            round_trip: None,
            quarantined_until: None,
            last_error: Some(last_error),
        }
    }
}

impl LastError {
    pub(crate) fn now(error: &(impl fmt::Display + ?Sized)) -> Self {
        Self {
            at: SystemTime::now(),
            message: error.to_string().into(),
        }
    }
}
