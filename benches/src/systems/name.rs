//! The names of the systems, and what the cases and the charts need to know of each.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The name of a system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum System {
    /// This project's locks; a cycle ends when the server has confirmed the release.
    Ours,
    /// The same, released in the background.
    OursDetached,
    /// The same, where nobody is granted a lock together with others of its process.
    OursAlone,
    /// The same as readers, who share a lock.
    OursRead,
    /// A bare client: one script to take, one to release.
    Ceiling,
    /// The crate `rslock`.
    Rslock,
    /// The crate `rlock`.
    Rlock,
    /// The crate `async-redis-lock`.
    AsyncRedisLock,
    /// The crate `distributed-lock`.
    DistributedLock,
    /// `Lock` of Python's `redis`.
    RedisPy,
    /// Node's `redlock`.
    Redlock,
    /// The functions of our schema on PostgreSQL, called for one lock at a time.
    #[cfg(feature = "postgres")]
    OursApart,
    /// Bare lease statements on PostgreSQL, on one connection.
    #[cfg(feature = "postgres")]
    LeaseStatements,
    /// The same, a connection for each task.
    #[cfg(feature = "postgres")]
    LeaseStatementsEach,
    /// Advisory locks of PostgreSQL, on one connection.
    #[cfg(feature = "postgres")]
    AdvisoryLocks,
    /// The same, a connection for each task.
    #[cfg(feature = "postgres")]
    AdvisoryLocksEach,
    /// Bare lease statements on MySQL, on one connection.
    #[cfg(feature = "mysql")]
    MysqlStatements,
    /// The same, a connection for each task.
    #[cfg(feature = "mysql")]
    MysqlStatementsEach,
    /// `GET_LOCK` of MySQL, a connection for each task.
    #[cfg(feature = "mysql")]
    MysqlGetLockEach,
    /// The crate `etcd-client`.
    #[cfg(feature = "stores")]
    EtcdClient,
    /// The crate `zookeeper-client`.
    #[cfg(feature = "stores")]
    ZooKeeperClient,
}

impl System {
    /// The other libraries that are written in Rust.
    pub(crate) const CRATES: [Self; 4] = [
        Self::Rslock,
        Self::Rlock,
        Self::AsyncRedisLock,
        Self::DistributedLock,
    ];

    /// The number of its colour in charts.
    pub(crate) fn color(self) -> usize {
        match self {
            Self::Ours | Self::OursDetached | Self::OursAlone | Self::OursRead => 0,
            Self::Ceiling => 1,
            Self::Rslock => 2,
            Self::Rlock => 3,
            Self::AsyncRedisLock => 4,
            Self::DistributedLock => 5,
            Self::RedisPy => 6,
            Self::Redlock => 7,
            #[cfg(feature = "stores")]
            Self::EtcdClient | Self::ZooKeeperClient => 8,
            #[cfg(feature = "postgres")]
            Self::OursApart => 0,
            #[cfg(feature = "postgres")]
            Self::LeaseStatements | Self::LeaseStatementsEach => 1,
            #[cfg(feature = "postgres")]
            Self::AdvisoryLocks | Self::AdvisoryLocksEach => 2,
            #[cfg(feature = "mysql")]
            Self::MysqlStatements | Self::MysqlStatementsEach => 1,
            #[cfg(feature = "mysql")]
            Self::MysqlGetLockEach => 2,
        }
    }

    /// Takes locks with a plain `SET`, and not with a script.
    pub(crate) fn takes_with_set(self) -> bool {
        matches!(
            self,
            Self::Rslock | Self::Rlock | Self::DistributedLock | Self::RedisPy
        )
    }
}

impl fmt::Display for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ours => "ours",
            Self::OursDetached => "ours, detached",
            Self::OursAlone => "ours, each granted alone",
            Self::OursRead => "ours, readers",
            Self::Ceiling => "ceiling",
            Self::Rslock => "rslock",
            Self::Rlock => "rlock",
            Self::AsyncRedisLock => "async-redis-lock",
            Self::DistributedLock => "distributed-lock",
            Self::RedisPy => "redis-py",
            Self::Redlock => "redlock (node)",
            #[cfg(feature = "stores")]
            Self::EtcdClient => "etcd-client",
            #[cfg(feature = "stores")]
            Self::ZooKeeperClient => "zookeeper-client",
            #[cfg(feature = "postgres")]
            Self::OursApart => "ours, a call for each lock",
            #[cfg(feature = "postgres")]
            Self::LeaseStatements => "lease statements",
            #[cfg(feature = "postgres")]
            Self::LeaseStatementsEach => "lease statements, a connection each",
            #[cfg(feature = "postgres")]
            Self::AdvisoryLocks => "advisory locks",
            #[cfg(feature = "postgres")]
            Self::AdvisoryLocksEach => "advisory locks, a connection each",
            #[cfg(feature = "mysql")]
            Self::MysqlStatements => "lease statements",
            #[cfg(feature = "mysql")]
            Self::MysqlStatementsEach => "lease statements, a connection each",
            #[cfg(feature = "mysql")]
            Self::MysqlGetLockEach => "GET_LOCK, a connection each",
        })
    }
}
