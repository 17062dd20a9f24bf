//! The address of a Redis server and its user, read from a URL.

use std::fmt;

use redis::{ProtocolVersion, RedisConnectionInfo};

use crate::backend::redis::protocol::names::Layout;
use crate::backend::redis::protocol::setnx::Setnx;
use crate::backend::transport::endpoint::Endpoint;
use crate::types::authority::{Authority, Host, given};
use crate::types::error::LockError;
use crate::types::url::{Url, decode};

pub(super) const DEFAULT_PORT: u16 = 6379;

/// A server, one of its databases and a user.
#[derive(Clone)]
pub(crate) struct Address {
    pub(crate) endpoint: Endpoint,
    pub(crate) login: Login,
    pub(crate) database: i64,
    pub(crate) layout: Layout,
}

/// User and password.
#[derive(Clone)]
pub(crate) struct Login {
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
}

impl Address {
    /// Reads `//[user:password@]host[:port][/db]`.
    pub(crate) fn server(url: &mut Url, encrypted: bool) -> Result<Self, LockError> {
        let layout = layout(url)?;
        Self::at_port(url, encrypted, layout)
    }

    /// The same, and how times are written: `?stamp=ms|s|float&offset=…`.
    pub(crate) fn setnx(url: &mut Url, encrypted: bool) -> Result<Self, LockError> {
        let layout = Layout::Setnx(Setnx::parse(url)?);
        Self::at_port(url, encrypted, layout)
    }

    fn at_port(url: &mut Url, encrypted: bool, layout: Layout) -> Result<Self, LockError> {
        let (authority, path) = Authority::parse(url, DEFAULT_PORT)?;
        let Ok([host]) = <[Host; 1]>::try_from(authority.hosts) else {
            return Err(url.broken(
                "it names several hosts, but `redis://` means one server; write `redis+sentinel://` for sentinels and \
                 `redis+cluster://` for a cluster",
            ));
        };
        Ok(Self {
            endpoint: Endpoint::Tcp { host, encrypted },
            login: Login {
                user: authority.user,
                password: authority.password,
            },
            database: database(path).map_err(|wrong| url.broken(wrong))?,
            layout,
        })
    }

    /// Reads `///path?db=1&user=…&pass=…`.
    #[cfg(unix)]
    pub(crate) fn unix(url: &mut Url) -> Result<Self, LockError> {
        let wrong = |reason| LockError::invalid("url", reason);
        let path = match url.authority_and_path()? {
            ("", "") => return Err(wrong("it names no socket: write `redis+unix:///path`")),
            ("", path) => format!("/{}", decode(path)?),
            _ => {
                return Err(wrong(
                    "a socket is no host: write `redis+unix:///path`, with three slashes, and the user as `?user=…`",
                ));
            }
        };
        Ok(Self {
            endpoint: Endpoint::Unix(path),
            login: Login {
                user: url.take("user")?.and_then(given),
                password: url.take("pass")?.and_then(given),
            },
            database: database(&url.take("db")?.unwrap_or_default()).map_err(wrong)?,
            layout: layout(url)?,
        })
    }
}

impl Login {
    /// The settings of a connection to one of the databases.
    pub(crate) fn to(&self, database: i64) -> RedisConnectionInfo {
        let mut login = RedisConnectionInfo::default()
            .set_db(database)
            .set_protocol(ProtocolVersion::RESP3)
            .set_skip_set_lib_name();
        if let Some(user) = &self.user {
            login = login.set_username(user);
        }
        if let Some(password) = &self.password {
            login = login.set_password(password);
        }
        login
    }
}

/// Reads in which layout the keys of a lock are.
pub(super) fn layout(url: &mut Url) -> Result<Layout, LockError> {
    match url.take("layout")?.as_deref() {
        None => Ok(Layout::Shared),
        Some("declared") => Ok(Layout::Declared),
        Some("plain") => Ok(Layout::Plain),
        Some(_) => Err(LockError::invalid(
            "layout",
            "it can only be `declared` or `plain`: leave it out for the usual one",
        )),
    }
}

/// Reads the number at the end of a URL.
pub(super) fn database(text: &str) -> Result<i64, &'static str> {
    let text = text.trim_matches('/');
    let number = if text.is_empty() { Ok(0) } else { text.parse() };
    let number = number.ok().filter(|number| *number >= 0);
    number.ok_or("the database must be a number from 0")
}

/// Names the endpoint and never the password.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redis at {}", self.endpoint)
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
        let mut url = Url::parse(text)?;
        let address = Address::server(&mut url, false)?;
        url.finish()?;
        Ok(address)
    }

    #[test]
    fn a_url_names_server_user_and_database() {
        for (text, endpoint, user, password, database) in [
            ("redis://h", "h:6379", None, None, 0),
            ("redis://h:1/", "h:1", None, None, 0),
            ("redis://me@h/7", "h:6379", Some("me"), None, 7),
            ("redis://:p@h", "h:6379", None, Some("p"), 0),
            (
                "redis://me:p:q@[::1]:8/2",
                "[::1]:8",
                Some("me"),
                Some("p:q"),
                2,
            ),
            ("redis://[::1]", "[::1]:6379", None, None, 0),
            (
                "redis://m%40e:%2F%3F%25@h",
                "h:6379",
                Some("m@e"),
                Some("/?%"),
                0,
            ),
            ("redis://me:p@q@h", "h:6379", Some("me"), Some("p@q"), 0),
        ] {
            let address = read(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(address.endpoint.to_string(), endpoint);
            assert_eq!(address.login.user.as_deref(), user);
            assert_eq!(address.login.password.as_deref(), password);
            assert_eq!(address.database, database);
        }
    }

    #[test]
    fn an_error_says_what_is_wrong_and_never_the_password() {
        for (text, says) in [
            ("redis:me:hunter2@h", "must begin with `redis://`"),
            ("redis://me:hunter2@", "names no host"),
            ("redis://me:hunter2@:6379", "names no host"),
            ("redis://me:hunter2@h:99999", "number from 1 to 65535"),
            ("redis://me:hunter2@h:0", "number from 1 to 65535"),
            ("redis://me:hunter2@h:port", "number from 1 to 65535"),
            ("redis://me:hunter2@h:1,i:2", "several hosts"),
            ("redis://me:hunter2@h,i", "several hosts"),
            ("redis://me:hunter2@::1", "in brackets"),
            ("redis://me:hunter2@[::1", "`]`"),
            ("redis://me:hunter2@h/shop", "database must be a number"),
            ("redis://me:hunter2@h/-1", "database must be a number"),
            ("redis://me:hun/ter2@h", "`%2F` for `/`"),
            ("redis://me:12/hunter2@h", "`%2F` for `/`"),
            ("redis://me:hun?ter2@h", "`%3F` for `?`"),
            ("redis://me:hun@i/ter2@h", "`%2F` for `/`"),
            ("redis://me:hun@i?ter2@h", "`%3F` for `?`"),
            ("redis://me:hun@i?ter2=3@h", "`%3F` for `?`"),
            ("redis://me:hun#ter2@h", "`%23` for `#`"),
            ("redis://me:hunter2@h:6379\n", "line break"),
            (" redis://me:hunter2@h", "a space"),
            ("redis://me:hun%ter2@h", "`%25` for `%`"),
            ("redis://me:hunter%2@h", "`%25` for `%`"),
        ] {
            refused(read(text), says);
        }
    }
}
