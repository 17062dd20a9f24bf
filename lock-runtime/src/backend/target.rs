//! Which store a URL names: one line for each scheme.

use std::sync::Arc;

use crate::backend::{self, Target};
use crate::types::error::LockError;
use crate::types::url::Url;

#[cfg(feature = "etcd")]
use crate::backend::etcd;
#[cfg(all(feature = "etcd", feature = "tls"))]
use crate::backend::etcd::tls as etcds;
#[cfg(feature = "redis")]
use crate::backend::redis::target as redis;
#[cfg(all(feature = "redis", feature = "tls"))]
use crate::backend::redis::target as rediss;
#[cfg(feature = "redis")]
pub(crate) use crate::backend::redis::target::independent;
#[cfg(feature = "zookeeper")]
use crate::backend::zookeeper;
#[cfg(all(feature = "tls", feature = "zookeeper"))]
use crate::backend::zookeeper::tls as zookeepers;

type Parse = fn(&mut Url) -> Result<Arc<dyn Target>, LockError>;

/// How the URLs of a store begin, and what reads them.
const STORES: &[(&str, Parse)] = &[
    ("memory:", backend::memory::target),
    ("redis://", redis::tcp),
    ("valkey://", redis::tcp),
    ("rediss://", rediss::tls),
    ("valkeys://", rediss::tls),
    ("redis+unix://", redis::unix),
    ("redis+sentinel://", redis::sentinel),
    ("rediss+sentinel://", rediss::sentinel_tls),
    ("redis+cluster://", redis::cluster),
    ("rediss+cluster://", rediss::cluster_tls),
    ("redis+redlock://", redis::redlock),
    ("rediss+redlock://", rediss::redlock_tls),
    ("redis+setnx://", redis::setnx),
    ("rediss+setnx://", rediss::setnx_tls),
    ("etcd://", etcd::tcp),
    ("etcds://", etcds),
    ("zookeeper://", zookeeper::tcp),
    ("zookeepers://", zookeepers),
    #[cfg(test)]
    ("chalkboard:", backend::chalkboard::target),
];

/// Schemes that other libraries know, and what to write instead.
const UNSUPPORTED: &[(&[&str], &str)] = &[
    (
        &["redis-sentinel", "sentinel"],
        "Redis Sentinel is written `redis+sentinel://HOST,HOST/SERVICE`",
    ),
    (
        &["rediss-sentinel"],
        "Redis Sentinel over TLS is written `rediss+sentinel://HOST,HOST/SERVICE`",
    ),
    (
        &["redis-cluster", "rediss-cluster"],
        "a Redis Cluster is written `redis+cluster://`",
    ),
    (
        &["redis+tls", "redis+ssl", "redis-tls"],
        "TLS is written `rediss://`",
    ),
    (
        &["unix", "redis-socket"],
        "a Unix socket is written `redis+unix:///path`",
    ),
];

/// Stands in for a store whose feature is off.
#[cfg(not(feature = "redis"))]
mod redis {
    use super::{Arc, LockError, Target, Url, left_out};

    pub(super) fn tcp(_url: &mut Url) -> Result<Arc<dyn Target>, LockError> {
        left_out("redis")
    }

    pub(super) fn unix(_url: &mut Url) -> Result<Arc<dyn Target>, LockError> {
        left_out("redis")
    }

    pub(super) fn redlock(_url: &mut Url) -> Result<Arc<dyn Target>, LockError> {
        left_out("redis")
    }

    pub(super) fn setnx(_url: &mut Url) -> Result<Arc<dyn Target>, LockError> {
        left_out("redis")
    }

    pub(super) fn sentinel(_url: &mut Url) -> Result<Arc<dyn Target>, LockError> {
        left_out("redis")
    }

    pub(super) fn cluster(_url: &mut Url) -> Result<Arc<dyn Target>, LockError> {
        left_out("redis")
    }
}

#[cfg(not(all(feature = "redis", feature = "tls")))]
mod rediss {
    use super::{Arc, LockError, Target, Url, left_out};

    /// The first feature that is missing.
    const MISSING: &str = if cfg!(feature = "redis") {
        "tls"
    } else {
        "redis"
    };

    pub(super) fn tls(_url: &mut Url) -> Result<Arc<dyn Target>, LockError> {
        left_out(MISSING)
    }

    pub(super) use {
        tls as cluster_tls, tls as redlock_tls, tls as sentinel_tls, tls as setnx_tls,
    };
}

#[cfg(not(feature = "etcd"))]
mod etcd {
    use super::{Arc, LockError, Target, Url, left_out};

    pub(super) fn tcp(_url: &mut Url) -> Result<Arc<dyn Target>, LockError> {
        left_out("etcd")
    }
}

#[cfg(not(all(feature = "etcd", feature = "tls")))]
fn etcds(_url: &mut Url) -> Result<Arc<dyn Target>, LockError> {
    left_out(if cfg!(feature = "etcd") {
        "tls"
    } else {
        "etcd"
    })
}

#[cfg(not(feature = "zookeeper"))]
mod zookeeper {
    use super::{Arc, LockError, Target, Url, left_out};

    pub(super) fn tcp(_url: &mut Url) -> Result<Arc<dyn Target>, LockError> {
        left_out("zookeeper")
    }
}

#[cfg(not(all(feature = "tls", feature = "zookeeper")))]
fn zookeepers(_url: &mut Url) -> Result<Arc<dyn Target>, LockError> {
    left_out(if cfg!(feature = "zookeeper") {
        "tls"
    } else {
        "zookeeper"
    })
}

#[cfg(not(all(
    feature = "etcd",
    feature = "redis",
    feature = "tls",
    feature = "zookeeper"
)))]
fn left_out(feature: &str) -> Result<Arc<dyn Target>, LockError> {
    let reason = format!(
        "lock-runtime was built without its feature `{feature}`: add it to the `features` of the dependency"
    );
    Err(LockError::invalid("url", reason))
}

/// Where the locks of a URL are kept; takes the store's own parameters out of it.
pub(crate) fn parse(url: &mut Url) -> Result<Arc<dyn Target>, LockError> {
    let scheme = |start: &'static str| start.split(':').next();
    let named = Some(&*url.scheme);
    if let Some((_, parse)) = STORES.iter().find(|(start, _)| scheme(start) == named) {
        return parse(url);
    }
    // The scheme is not shown: in a URL without one, it is a user's name.
    let unsupported = UNSUPPORTED
        .iter()
        .find(|(schemes, _)| schemes.contains(&&*url.scheme));
    Err(match unsupported {
        Some((_, instead)) => LockError::invalid("url", instead),
        None => LockError::invalid("url", unknown()),
    })
}

fn unknown() -> String {
    let starts: Vec<_> = STORES
        .iter()
        .map(|(start, _)| format!("`{start}`"))
        .collect();
    format!("it must begin with one of {}", starts.join(", "))
}
