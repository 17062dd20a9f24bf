//! A service and its sentinels, read from a URL.

use std::fmt;

use crate::backend::redis::address::{Login, database};
use crate::types::authority::{Authority, Host, given};
use crate::types::error::LockError;
use crate::types::url::{Url, decode};

const DEFAULT_PORT: u16 = 26379;

/// The servers that sentinels watch under one name.
#[derive(Clone)]
pub(crate) struct Service {
    pub(crate) name: String,
    /// One or more.
    pub(crate) sentinels: Vec<Host>,
    pub(crate) sentinel_login: Login,
    /// The user of the master, and one of its databases.
    pub(crate) login: Login,
    pub(crate) database: i64,
    /// Whether all connections are encrypted, those to the sentinels too.
    pub(crate) encrypted: bool,
}

impl Service {
    /// Reads `//[user:password@]host[:port][,host[:port]…]/SERVICE[/db]`, and the
    /// parameters `sentinel_user` and `sentinel_password`.
    pub(crate) fn parse(url: &mut Url, encrypted: bool) -> Result<Self, LockError> {
        let sentinel_login = Login {
            user: url.take("sentinel_user")?.and_then(given),
            password: url.take("sentinel_password")?.and_then(given),
        };
        let (authority, path) = Authority::parse(url, DEFAULT_PORT)?;
        let (name, rest) = path.split_once('/').unwrap_or((path, ""));
        if name.is_empty() {
            return Err(url.broken(&format!(
                "it names no service: write {}://HOST,HOST/SERVICE",
                url.scheme
            )));
        }
        Ok(Self {
            name: decode(name)?,
            sentinels: authority.hosts,
            sentinel_login,
            login: Login {
                user: authority.user,
                password: authority.password,
            },
            database: database(rest).map_err(|wrong| url.broken(wrong))?,
            encrypted,
        })
    }
}

/// Names service and sentinels and never a password.
impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redis service `{}` at the sentinels", self.name)?;
        for (number, host) in self.sentinels.iter().enumerate() {
            let comma = if number > 0 { "," } else { "" };
            write!(f, "{comma} {host}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Service, LockError> {
        let mut url = Url::parse(text)?;
        let service = Service::parse(&mut url, false)?;
        url.finish()?;
        Ok(service)
    }

    #[test]
    fn a_url_names_sentinels_service_and_users() {
        let service = read(
            "redis+sentinel://me:p%40@a,b:1,[::1]/shop%2Fnorth/7?sentinel_user=eye&sentinel_password=q%23",
        )
        .expect("a URL");
        let hosts: Vec<_> = service.sentinels.iter().map(Host::to_string).collect();
        assert_eq!(hosts, ["a:26379", "b:1", "[::1]:26379"]);
        assert_eq!((&*service.name, service.database), ("shop/north", 7));
        assert_eq!(service.login.user.as_deref(), Some("me"));
        assert_eq!(service.login.password.as_deref(), Some("p@"));
        assert_eq!(service.sentinel_login.user.as_deref(), Some("eye"));
        assert_eq!(service.sentinel_login.password.as_deref(), Some("q#"));
        assert_eq!(
            service.to_string(),
            "Redis service `shop/north` at the sentinels a:26379, b:1, [::1]:26379"
        );
    }

    #[test]
    fn an_error_says_what_is_wrong_and_never_a_password() {
        for (text, says) in [
            ("redis+sentinel://me:hunter2@a,b", "names no service"),
            ("redis+sentinel://me:hunter2@a,b/", "names no service"),
            ("redis+sentinel://me:hunter2@a,b//1", "names no service"),
            (
                "redis+sentinel://me:hunter2@a,b/shop/x",
                "database must be a number",
            ),
            ("redis+sentinel://me:hunter2@a,/shop", "names no host"),
            (
                "redis+sentinel://a/shop?sentinel_pass=hunter2",
                "`sentinel_pass`",
            ),
        ] {
            let text = match read(text) {
                Ok(service) => panic!("{text}: {service:?}"),
                Err(error) => format!("{error} {error:?}"),
            };
            assert!(text.contains(says) && !text.contains("hunter2"), "{text}");
        }
    }
}
