//! The reachability of the store, for a readiness probe.

use std::fmt;
use std::time::{Duration, SystemTime};

#[cfg(feature = "serde")]
use crate::types::units;

/// The state of a manager's connection to its store; see
/// [`LockManager::health`](crate::LockManager::health).
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Health {
    /// Whether the server has just answered: with a cluster at least one master, with Redlock a
    /// majority.
    pub connected: bool,
    /// Whether locks can be granted now: with a cluster those of at least one master, with Redlock
    /// by a majority. A readiness probe uses this field. It does not cover the
    /// [replicas](crate::LockConfig::replicas) of a master.
    pub grants: bool,
    /// How many of `servers` have answered.
    pub reachable: usize,
    /// How many servers decide about locks: the masters of a cluster, the servers of Redlock, or
    /// one. ZooKeeper and etcd count as one server, which answers while a majority of the ensemble
    /// is up.
    pub servers: usize,
    /// The time until the answer.
    #[cfg_attr(
        feature = "serde",
        serde(rename = "round_trip_us", serialize_with = "units::micros")
    )]
    pub round_trip: Option<Duration>,
    /// The end of the [`quarantine`](crate::LockConfig::quarantine), by the clock of this machine.
    /// Until then the server answers and renews, but grants nothing, since it may have forgotten
    /// locks.
    #[cfg_attr(
        feature = "serde",
        serde(
            rename = "quarantined_until_unix_ms",
            serialize_with = "units::unix_millis"
        )
    )]
    pub quarantined_until: Option<SystemTime>,
    /// The last failure, which may be over.
    pub last_error: Option<LastError>,
}

/// A failure of a connection, and its time.
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
    /// The message of the server or the connection.
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
