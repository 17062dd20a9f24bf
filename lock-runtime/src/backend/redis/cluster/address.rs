//! The addresses of a cluster and its user, read from a URL.

use std::fmt;

use crate::backend::redis::address::Login;
use crate::types::authority::{Authority, Host};
use crate::types::error::LockError;
use crate::types::url::Url;

const DEFAULT_PORT: u16 = 6379;

/// Some nodes of a cluster, and a user that all nodes know.
#[derive(Clone)]
pub(crate) struct ClusterAddress {
    pub(crate) seeds: Vec<Host>,
    pub(crate) encrypted: bool,
    pub(crate) login: Login,
}

impl ClusterAddress {
    /// Reads `//[user:password@]host[:port][,host[:port]…]`.
    pub(crate) fn parse(url: &Url, encrypted: bool) -> Result<Self, LockError> {
        let (authority, path) = Authority::parse(url, DEFAULT_PORT)?;
        if !matches!(path.trim_matches('/'), "" | "0") {
            return Err(url.broken("a cluster has no databases: leave out what follows the hosts"));
        }
        Ok(Self {
            seeds: authority.hosts,
            encrypted,
            login: Login {
                user: authority.user,
                password: authority.password,
            },
        })
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
        let address = ClusterAddress::parse(&url, false).expect("an address");
        assert_eq!(address.to_string(), "Redis Cluster at a:6379,b:1");
        assert_eq!(address.seeds[1].to_string(), "b:1");
        assert_eq!(address.login.user.as_deref(), Some("me"));
        assert_eq!(address.login.password.as_deref(), Some("p@"));
    }

    #[test]
    fn a_cluster_has_no_databases() {
        let url = Url::parse("redis+cluster://a/2").expect("a URL");
        let error = ClusterAddress::parse(&url, false).expect_err("a database");
        assert!(error.to_string().contains("no databases"), "{error}");
    }
}
