//! Which store a URL names: one line for each scheme.

use std::sync::Arc;

#[cfg(feature = "redis")]
use crate::backend::redis;
use crate::backend::{Target, memory};
use crate::vocabulary::error::LockError;
use crate::vocabulary::url::Url;

type Parse = fn(&mut Url) -> Result<Arc<dyn Target>, LockError>;

/// The schemes of the stores, how their URLs begin, and who reads the rest.
const STORES: &[(&str, &str, Parse)] = &[
    ("memory", "memory:", memory::target),
    ("redis", "redis://", REDIS),
    ("valkey", "valkey://", REDIS),
    ("rediss", "rediss://", REDIS_TLS),
    ("valkeys", "valkeys://", REDIS_TLS),
    ("redis+unix", "redis+unix://", REDIS_UNIX),
];

#[cfg(feature = "redis")]
const REDIS: Parse = redis::tcp;
#[cfg(not(feature = "redis"))]
const REDIS: Parse = |_| left_out("redis");
#[cfg(feature = "redis")]
const REDIS_UNIX: Parse = redis::unix;
#[cfg(not(feature = "redis"))]
const REDIS_UNIX: Parse = |_| left_out("redis");

#[cfg(feature = "tls")]
const REDIS_TLS: Parse = redis::tls;
#[cfg(not(feature = "tls"))]
const REDIS_TLS: Parse = |_| left_out("tls");

/// What others write, and what to do instead.
const UNSUPPORTED: &[(&[&str], &str)] = &[
    (
        &[
            "redis-sentinel",
            "redis+sentinel",
            "rediss-sentinel",
            "rediss+sentinel",
            "sentinel",
        ],
        "Redis Sentinel is not supported: name one server, with `redis://`",
    ),
    (
        &[
            "redis-cluster",
            "redis+cluster",
            "rediss-cluster",
            "rediss+cluster",
        ],
        "Redis Cluster is not supported: name one server that is no part of a cluster, with `redis://`",
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

/// Where the locks of a URL are kept; takes the store's own parameters out of it.
pub(crate) fn parse(url: &mut Url) -> Result<Arc<dyn Target>, LockError> {
    if let Some((.., parse)) = STORES.iter().find(|(scheme, ..)| *scheme == url.scheme) {
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
        .map(|(_, start, _)| format!("`{start}`"))
        .collect();
    format!("it must begin with one of {}", starts.join(", "))
}

#[cfg(not(feature = "tls"))]
fn left_out(feature: &str) -> Result<Arc<dyn Target>, LockError> {
    let reason = format!(
        "lock-runtime was built without its feature `{feature}`: name it in `features` of the dependency"
    );
    Err(LockError::invalid("url", reason))
}
