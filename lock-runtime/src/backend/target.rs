//! Which store a URL names: one line for each store, which lists its own schemes.

use std::sync::Arc;

use crate::backend::Target;
use crate::backend::scheme::{Scheme, without};
#[cfg(feature = "tls")]
use crate::backend::transport;
use crate::types::error::LockError;
#[cfg(feature = "tls")]
use crate::types::tls::Tls;
use crate::types::url::Url;

/// The schemes of each store that this build has.
const STORES: &[&[Scheme]] = &[
    super::memory::SCHEMES,
    #[cfg(feature = "redis")]
    super::redis::target::SCHEMES,
    #[cfg(feature = "etcd")]
    super::etcd::SCHEMES,
    #[cfg(feature = "mysql")]
    super::mysql::target::SCHEMES,
    #[cfg(feature = "postgres")]
    super::postgres::target::SCHEMES,
    #[cfg(feature = "zookeeper")]
    super::zookeeper::SCHEMES,
    #[cfg(test)]
    super::chalkboard::SCHEMES,
];

/// How the schemes of a store begin that has a feature of its own, and that feature.
const FEATURES: &[(&str, &str)] = &[
    ("redis", "redis"),
    ("valkey", "redis"),
    ("etcd", "etcd"),
    ("mysql", "mysql"),
    ("mariadb", "mysql"),
    ("postgres", "postgres"),
    ("zookeeper", "zookeeper"),
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

fn schemes() -> impl Iterator<Item = &'static Scheme> {
    STORES.iter().copied().flatten()
}

/// The store that a URL names; takes the store's own parameters out of the URL.
pub(crate) fn parse(url: &mut Url) -> Result<Arc<dyn Target>, LockError> {
    let reason = match schemes().find(|it| it.name() == url.scheme) {
        Some(scheme) if scheme.encrypted && !cfg!(feature = "tls") => without("tls"),
        Some(scheme) => return (scheme.parse)(url, scheme.encrypted),
        None => unknown(&url.scheme),
    };
    Err(LockError::invalid("url", reason))
}

/// Advice about a scheme that no store has. It does not repeat the scheme: in a URL without a
/// scheme, it is a user's name.
fn unknown(scheme: &str) -> String {
    let mut unsupported = UNSUPPORTED.iter();
    if let Some((_, instead)) = unsupported.find(|(schemes, _)| schemes.contains(&scheme)) {
        return (*instead).to_owned();
    }
    let begins = |(start, _): &&(&str, &str)| scheme.starts_with(start);
    if let Some((start, feature)) = FEATURES.iter().find(begins)
        && !schemes().any(|it| it.start.starts_with(start))
    {
        return without(feature);
    }
    format!("it must begin with one of {}", listed(|_| true))
}

/// Checks how connections to a store are to be encrypted; reads the files that it names.
#[cfg(feature = "tls")]
pub(crate) fn check_tls(target: &dyn Target, tls: Option<&Tls>) -> Result<(), LockError> {
    let hosts = target.encrypted_hosts();
    if hosts.is_empty() && tls.is_some() {
        let encrypted = listed(|scheme| scheme.encrypted);
        let reason = format_args!(
            "the URL does not ask for encryption: write {encrypted}, or `sslmode=verify-full` for PostgreSQL and MySQL"
        );
        return Err(LockError::invalid("tls", reason));
    }
    transport::tls::check(&tls.cloned().unwrap_or_default(), &hosts)?;
    Ok(())
}

fn listed(which: impl Fn(&Scheme) -> bool) -> String {
    let starts = schemes().filter(|scheme| which(scheme));
    let starts: Vec<_> = starts.map(|scheme| format!("`{}`", scheme.start)).collect();
    starts.join(", ")
}
