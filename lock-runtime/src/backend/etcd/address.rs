//! Which members there are and who asks there, read from a URL.

use std::fmt;

use crate::types::authority::{Authority, Host};
use crate::types::credentials::Credentials;
use crate::types::error::LockError;
use crate::types::url::Url;

const DEFAULT_PORT: u16 = 2379;

/// The members of a cluster, and a user.
#[derive(Clone)]
pub(crate) struct Address {
    pub(crate) hosts: Vec<Host>,
    pub(crate) login: Option<Credentials>,
    pub(crate) encrypted: bool,
}

impl Address {
    /// Reads `//[user:password@]host[:port][,host[:port]…]`.
    pub(crate) fn parse(url: &Url, encrypted: bool) -> Result<Self, LockError> {
        let (authority, path) = Authority::parse(url, DEFAULT_PORT)?;
        if !path.is_empty() {
            let wrong = "it has a path, and etcd has none: what keys begin with is set by `prefix`";
            return Err(url.broken(wrong));
        }
        let login = match (authority.user, authority.password) {
            (None, None) => None,
            (Some(user), Some(password)) => Some(Credentials::new(user, password)),
            _ => return Err(url.broken("etcd wants both a user and a password")),
        };
        Ok(Self {
            hosts: authority.hosts,
            login,
            encrypted,
        })
    }
}

/// Names the members and never the password.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hosts: Vec<_> = self.hosts.iter().map(Host::to_string).collect();
        write!(f, "etcd at {}", hosts.join(","))
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::url::refused;

    fn read(text: &str) -> Result<Address, LockError> {
        Address::parse(&Url::parse(text)?, false)
    }

    #[test]
    fn a_url_names_members_and_user() {
        let address = read("etcd://me:p%40@a,b:1,[::1]").expect("an address");
        assert_eq!(address.to_string(), "etcd at a:2379,b:1,[::1]:2379");
        let login = address.login.expect("a user");
        assert_eq!(
            (login.user.as_deref(), &*login.password),
            (Some("me"), "p@")
        );
        assert!(read("etcd://a/").expect("an address").login.is_none());
    }

    #[test]
    fn an_error_says_what_is_wrong_and_never_the_password() {
        for (text, says) in [
            ("etcd://me:hunter2@", "names no host"),
            ("etcd://me:hunter2@a/shop", "set by `prefix`"),
            ("etcd://:hunter2@a", "both a user and a password"),
        ] {
            refused(read(text), says);
        }
    }
}
