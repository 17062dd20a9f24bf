//! The servers of which a majority decides, read from a URL.

use std::fmt;

use redis::RedisConnectionInfo;

use crate::backend::redis::address::{Address, DEFAULT_PORT, Login, database};
use crate::backend::redis::protocol::names::Layout;
use crate::backend::redis::transport::way::Way;
use crate::backend::setup::Setup;
use crate::backend::transport::endpoint::{Endpoint, Route};
use crate::types::authority::Authority;
use crate::types::error::LockError;
use crate::types::url::Url;

/// How many servers there may be: one more would not survive the loss of more of them.
const NUMBERS: [usize; 3] = [3, 5, 7];

/// Independent servers.
#[derive(Clone)]
pub(crate) struct Servers(Vec<Address>);

impl Servers {
    /// Reads `//[user:password@]host[:port],host[:port],host[:port]…[/db]`.
    pub(crate) fn parse(url: &Url, encrypted: bool) -> Result<Self, LockError> {
        let (authority, path) = Authority::parse(url, DEFAULT_PORT)?;
        let login = Login {
            user: authority.user,
            password: authority.password,
        };
        let database = database(path).map_err(|wrong| url.broken(wrong))?;
        let hosts = authority.hosts.into_iter();
        let servers = hosts.map(|host| Address {
            endpoint: Endpoint::Tcp { host, encrypted },
            login: login.clone(),
            database,
            layout: Layout::Shared,
        });
        Self::of(servers.collect()).map_err(|wrong| url.broken(&wrong))
    }

    /// These servers, or the mistake in them.
    pub(crate) fn of(servers: Vec<Address>) -> Result<Self, String> {
        let count = servers.len();
        if !NUMBERS.contains(&count) {
            return Err(format!(
                "a majority of 3, 5 or 7 independent servers decides in Redlock, and it names {count}; one server is \
                 `redis://`"
            ));
        }
        for (number, Address { endpoint, .. }) in servers.iter().enumerate() {
            if servers[..number].iter().any(|it| it.endpoint == *endpoint) {
                return Err(format!(
                    "it names {endpoint} twice, but a server has one vote in Redlock"
                ));
            }
        }
        Ok(Self(servers))
    }

    pub(crate) fn endpoints(&self) -> impl Iterator<Item = &Endpoint> {
        self.0.iter().map(|server| &server.endpoint)
    }

    /// One of the databases, of which errors speak.
    pub(super) fn database(&self) -> i64 {
        self.0[0].database
    }

    /// The way to each of them, and what a connection begins with.
    pub(super) fn ways(&self, setup: &Setup) -> impl Iterator<Item = (Way, RedisConnectionInfo)> {
        self.0.iter().map(|server| {
            let way = Way::Known(Route::new(server.endpoint.clone(), setup));
            (way, server.login.to(server.database))
        })
    }
}

/// Names the servers and never the password.
impl fmt::Display for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redlock on")?;
        for (number, endpoint) in self.endpoints().enumerate() {
            let comma = if number > 0 { "," } else { "" };
            write!(f, "{comma} {endpoint}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Servers, LockError> {
        Servers::parse(&Url::parse(text)?, false)
    }

    #[test]
    fn a_url_names_servers_user_and_database() {
        let servers = read("redis+redlock://me:p%40@a,b:1,[::1]:2/7").expect("a URL");
        let endpoints: Vec<_> = servers.endpoints().map(Endpoint::to_string).collect();
        assert_eq!(endpoints, ["a:6379", "b:1", "[::1]:2"]);
        for server in &servers.0 {
            assert_eq!(server.login.password.as_deref(), Some("p@"));
            assert_eq!(server.database, 7);
        }
        assert_eq!(servers.to_string(), "Redlock on a:6379, b:1, [::1]:2");
    }

    #[test]
    fn numbers_that_have_no_use_are_refused_with_a_sentence() {
        for (text, says) in [
            ("redis+redlock://p:hunter2@a", "names 1; one server is"),
            (
                "redis+redlock://p:hunter2@a,b",
                "3, 5 or 7 independent servers",
            ),
            ("redis+redlock://p:hunter2@a,b,c,d", "it names 4"),
            ("redis+redlock://p:hunter2@a,b,c,d,e,f", "it names 6"),
            ("redis+redlock://p:hunter2@a,b,a:6379", "names a:6379 twice"),
            ("redis+redlock://p:hunter2@a,b,c/x", "must be a number"),
        ] {
            let text = match read(text) {
                Ok(servers) => panic!("{text}: {servers}"),
                Err(error) => error.to_string(),
            };
            assert!(text.contains(says) && !text.contains("hunter2"), "{text}");
        }
    }
}
