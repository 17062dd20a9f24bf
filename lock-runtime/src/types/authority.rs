//! The servers and the user that a URL names between `//` and its path.

use std::fmt;

use crate::types::error::LockError;
use crate::types::url::{Url, decode};

/// The part of a URL between `//` and the path.
pub(crate) struct Authority {
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
    /// One or more.
    pub(crate) hosts: Vec<Host>,
}

/// A server's name or address, and its port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Host {
    pub(crate) name: String,
    pub(crate) port: u16,
}

impl Authority {
    /// Reads `//[user:password@]host[:port][,host[:port]…]`; returns it with the path that
    /// follows.
    pub(crate) fn parse(url: &Url, default_port: u16) -> Result<(Self, &str), LockError> {
        let (authority, path) = url.authority_and_path()?;
        let (login, servers) = match authority.rsplit_once('@') {
            Some((login, servers)) => (login, servers),
            None => ("", authority),
        };
        let (user, password) = login.split_once(':').unwrap_or((login, ""));
        let hosts = servers
            .split(',')
            .map(|server| host(server, &url.scheme, default_port))
            .collect::<Result<_, _>>()
            .map_err(|wrong| url.broken(&wrong))?;
        let this = Self {
            user: given(decode(user)?),
            password: given(decode(password)?),
            hosts,
        };
        Ok((this, path))
    }
}

/// The server names for encryption; none without encryption.
pub(crate) fn names_if(encrypted: bool, hosts: &[Host]) -> Vec<&str> {
    let hosts = if encrypted { hosts } else { &[] };
    hosts.iter().map(|host| host.name.as_str()).collect()
}

/// The text, unless it is empty.
pub(crate) fn given(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

fn host(server: &str, scheme: &str, default_port: u16) -> Result<Host, String> {
    // The colons of an IPv6 address are within brackets.
    let (name, port) = match server.strip_prefix('[') {
        Some(rest) => {
            let (name, port) = rest
                .split_once(']')
                .ok_or("the `]` after the IPv6 address is missing")?;
            (name, port.strip_prefix(':').unwrap_or(port))
        }
        None if server.matches(':').count() > 1 => {
            return Err(format!(
                "an IPv6 address must stand in brackets, as in {scheme}://[::1]:{default_port}"
            ));
        }
        None => server.split_once(':').unwrap_or((server, "")),
    };
    if name.is_empty() {
        return Err(format!(
            "it names no host: write {scheme}://HOST or {scheme}://HOST:PORT"
        ));
    }
    let port = match port {
        "" => default_port,
        _ => port
            .parse()
            .ok()
            .filter(|port| *port > 0)
            .ok_or("the port must be a number from 1 to 65535")?,
    };
    Ok(Host {
        name: name.to_owned(),
        port,
    })
}

/// Writes a host and its port as in a URL.
pub(crate) fn at_port(f: &mut fmt::Formatter<'_>, host: &str, port: u16) -> fmt::Result {
    if host.contains(':') {
        write!(f, "[{host}]:{port}")
    } else {
        write!(f, "{host}:{port}")
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        at_port(f, &self.name, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_hosts_stand_between_commas() {
        let url = Url::parse("etcd://me:p%40@a,b:1,[::1]:2/shop").expect("a URL");
        let (authority, path) = Authority::parse(&url, 2379).expect("an authority");
        let hosts: Vec<_> = authority.hosts.iter().map(Host::to_string).collect();
        assert_eq!(hosts, ["a:2379", "b:1", "[::1]:2"]);
        assert_eq!(authority.user.as_deref(), Some("me"));
        assert_eq!((authority.password.as_deref(), path), (Some("p@"), "shop"));
    }

    #[test]
    fn each_of_several_hosts_has_a_name() {
        let url = Url::parse("etcd://a,:1").expect("a URL");
        let error = Authority::parse(&url, 2379)
            .map(|_| ())
            .expect_err("no name");
        let text = error.to_string();
        assert!(
            text.contains("it names no host: write etcd://HOST"),
            "{text}"
        );
    }
}
