//! Where a cluster is and who asks there, read from a URL.

use std::fmt;

use crate::backend::redis::address::{Address, Place};
use crate::backend::redis::protocol::call::Layout;
use crate::vocabulary::authority::{Authority, Host};
use crate::vocabulary::error::LockError;
use crate::vocabulary::url::Url;

const DEFAULT_PORT: u16 = 6379;

/// Some nodes of a cluster, and a user that all nodes know.
#[derive(Clone)]
pub(crate) struct ClusterAddress {
    pub(super) seeds: Vec<Host>,
    place: fn(Host) -> Place,
    user: Option<String>,
    password: Option<String>,
}

impl ClusterAddress {
    /// Reads `//[user:password@]host[:port][,host[:port]…]`.
    pub(crate) fn tcp(url: &Url) -> Result<Self, LockError> {
        Self::parse(url, |Host { name: host, port }| Place::Tcp { host, port })
    }

    /// The same, encrypted.
    #[cfg(feature = "tls")]
    pub(crate) fn tls(url: &Url) -> Result<Self, LockError> {
        Self::parse(url, |Host { name: host, port }| Place::Tls { host, port })
    }

    fn parse(url: &Url, place: fn(Host) -> Place) -> Result<Self, LockError> {
        let (authority, path) = Authority::parse(url, DEFAULT_PORT)?;
        if !matches!(path.trim_matches('/'), "" | "0") {
            return Err(url.broken("a cluster has no databases: leave out what follows the hosts"));
        }
        Ok(Self {
            seeds: authority.hosts,
            place,
            user: authority.user,
            password: authority.password,
        })
    }

    #[cfg(feature = "tls")]
    pub(crate) fn uses_tls(&self) -> bool {
        self.seeds.first().is_some_and(|seed| {
            let place = (self.place)(seed.clone());
            matches!(place, Place::Tls { .. })
        })
    }

    /// The address of one node.
    pub(super) fn node(&self, host: Host) -> Address {
        Address {
            place: (self.place)(host),
            user: self.user.clone(),
            password: self.password.clone(),
            database: 0,
            layout: Layout::Declared,
        }
    }
}

/// Names the hosts and never the password.
impl fmt::Display for ClusterAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redis Cluster at ")?;
        for (number, host) in self.seeds.iter().enumerate() {
            let comma = if number == 0 { "" } else { "," };
            write!(f, "{comma}{host}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for ClusterAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_some_nodes_and_a_user() {
        let url = Url::parse("redis+cluster://me:p%40@a,b:1/0").expect("a URL");
        let address = ClusterAddress::tcp(&url).expect("an address");
        assert_eq!(address.to_string(), "Redis Cluster at a:6379,b:1");
        let node = address.node(address.seeds[1].clone());
        assert_eq!(node.place.to_string(), "b:1");
        assert_eq!(node.user.as_deref(), Some("me"));
        assert_eq!(node.password.as_deref(), Some("p@"));
    }

    #[test]
    fn a_cluster_has_no_databases() {
        let url = Url::parse("redis+cluster://a/2").expect("a URL");
        let error = ClusterAddress::tcp(&url).expect_err("a database");
        assert!(error.to_string().contains("no databases"), "{error}");
    }
}
