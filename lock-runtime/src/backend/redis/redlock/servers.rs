//! The servers of which a majority decides, read from a URL.

use std::fmt;

use redis::RedisConnectionInfo;

use crate::backend::redis::address::{DEFAULT_PORT, Login, Place, database};
use crate::backend::redis::transport::stream::Route;
use crate::backend::redis::transport::way::Way;
use crate::backend::setup::Setup;
use crate::vocabulary::authority::{Authority, Host};
use crate::vocabulary::error::LockError;
use crate::vocabulary::url::Url;

/// How many servers there may be: one more would not survive the loss of more of them.
const NUMBERS: [usize; 3] = [3, 5, 7];

/// Independent servers, one of the databases of each, and a user.
#[derive(Clone)]
pub(crate) struct Servers {
    pub(crate) hosts: Vec<Host>,
    login: Login,
    pub(super) database: i64,
    pub(crate) encrypted: bool,
}

impl Servers {
    /// Reads `//[user:password@]host[:port],host[:port],host[:port]…[/db]`.
    pub(crate) fn parse(url: &Url, encrypted: bool) -> Result<Self, LockError> {
        let (authority, path) = Authority::parse(url, DEFAULT_PORT)?;
        let hosts = authority.hosts;
        let count = hosts.len();
        if !NUMBERS.contains(&count) {
            return Err(url.broken(&format!(
                "a majority of 3, 5 or 7 independent servers decides in Redlock, and it names {count}; one server is \
                 `redis://`"
            )));
        }
        for (number, host) in hosts.iter().enumerate() {
            if hosts[..number].contains(host) {
                return Err(url.broken(&format!(
                    "it names {host} twice, but a server has one vote in Redlock"
                )));
            }
        }
        Ok(Self {
            hosts,
            login: Login {
                user: authority.user,
                password: authority.password,
            },
            database: database(path).map_err(|wrong| url.broken(wrong))?,
            encrypted,
        })
    }

    /// The way to each of them, and what a connection begins with.
    pub(super) fn ways(&self, setup: &Setup) -> impl Iterator<Item = (Way, RedisConnectionInfo)> {
        self.hosts.iter().map(|host| {
            let place = Place::at(host.clone(), self.encrypted);
            let way = Way::Known(Route::new(&place, setup));
            (way, self.login.to(self.database))
        })
    }
}

/// Names the servers and never the password.
impl fmt::Display for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redlock on")?;
        for (number, host) in self.hosts.iter().enumerate() {
            let comma = if number > 0 { "," } else { "" };
            write!(f, "{comma} {host}")?;
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
        let hosts: Vec<_> = servers.hosts.iter().map(Host::to_string).collect();
        assert_eq!(hosts, ["a:6379", "b:1", "[::1]:2"]);
        assert_eq!(servers.login.password.as_deref(), Some("p@"));
        assert_eq!(servers.database, 7);
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
