//! The addresses of the servers, the node above the locks, and the user: read from a
//! URL.

use std::fmt;

use crate::types::authority::{Authority, Host};
use crate::types::credentials::Credentials;
use crate::types::error::LockError;
use crate::types::url::{Url, decode};

const DEFAULT_PORT: u16 = 2181;

/// An ensemble of servers.
#[derive(Clone)]
pub(crate) struct Address {
    pub(super) hosts: Vec<Host>,
    pub(super) encrypted: bool,
    /// Empty, or the path of a node.
    pub(super) chroot: String,
    user: Option<String>,
    password: Option<String>,
}

impl Address {
    /// Reads `//[user:password@]host[:port][,host[:port]…][/chroot]`.
    pub(super) fn parse(url: &Url, encrypted: bool) -> Result<Self, LockError> {
        let (authority, path) = Authority::parse(url, DEFAULT_PORT)?;
        let chroot = chroot(&decode(path)?).map_err(|wrong| url.broken(wrong))?;
        Ok(Self {
            hosts: authority.hosts,
            encrypted,
            chroot,
            user: authority.user,
            password: authority.password,
        })
    }

    /// The credentials of a connection.
    pub(super) fn login(&self) -> Option<Credentials> {
        let password = self.password.clone().unwrap_or_default();
        let user = self.user.clone()?;
        Some(Credentials::new(user, password))
    }
}

fn chroot(path: &str) -> Result<String, &'static str> {
    let path = path.trim_end_matches('/');
    if path.is_empty() {
        return Ok(String::new());
    }
    let is_name = |name: &str| !matches!(name, "" | "." | "..") && !name.contains(char::is_control);
    if !path.split('/').all(is_name) {
        return Err("the path after the hosts must be that of a node, as in /apps/locks");
    }
    Ok(format!("/{path}"))
}

/// Names the servers and never the password.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ZooKeeper at ")?;
        for (number, host) in self.hosts.iter().enumerate() {
            let comma = if number == 0 { "" } else { "," };
            write!(f, "{comma}{host}")?;
        }
        f.write_str(&self.chroot)
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
    fn a_url_names_servers_a_node_and_a_user() {
        for (text, shown, user) in [
            ("zookeeper://h", "h:2181", None),
            ("zookeeper://h:1,[::1],i/", "h:1,[::1]:2181,i:2181", None),
            ("zookeeper://me:p@h/a/b/", "h:2181/a/b", Some("me")),
            ("zookeeper://h/a%20b", "h:2181/a b", None),
        ] {
            let address = read(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(address.to_string(), format!("ZooKeeper at {shown}"));
            assert_eq!(address.login().and_then(|it| it.user).as_deref(), user);
        }
    }

    #[test]
    fn an_error_says_what_is_wrong_and_never_the_password() {
        for (text, says) in [
            ("zookeeper://me:hunter2@", "names no host"),
            ("zookeeper://me:hunter2@h:0", "number from 1 to 65535"),
            ("zookeeper://me:hunter2@h/a//b", "must be that of a node"),
            ("zookeeper://me:hunter2@h/a/..", "must be that of a node"),
            ("zookeeper://me:hun/ter2@h", "`%2F` for `/`"),
        ] {
            refused(read(text), says);
        }
    }
}
