//! The addresses of the servers, the user, and the database of the locks, read from a URL.

use std::fmt;

use crate::backend::sql::parameters::{Install, encrypted, install};
use crate::types::authority::{Authority, Host};
use crate::types::credentials::Credentials;
use crate::types::error::LockError;
use crate::types::url::{Url, decode};

const DEFAULT_PORT: u16 = 3306;

/// Servers of which one writes, and one of their databases.
#[derive(Clone)]
pub(crate) struct Address {
    /// In the order in which they are tried.
    pub(crate) hosts: Vec<Host>,
    pub(crate) encrypted: bool,
    pub(crate) user: Option<String>,
    password: Option<String>,
    pub(crate) database: String,
    pub(crate) install: Install,
}

impl Address {
    /// Reads `//[user[:password]@]host[:port][,host[:port]…]/database` and its parameters.
    pub(crate) fn parse(url: &mut Url) -> Result<Self, LockError> {
        let (authority, path) = Authority::parse(url, DEFAULT_PORT)?;
        if authority.user.is_none() && authority.password.is_some() {
            return Err(url.broken("MySQL wants a user with the password"));
        }
        if path.is_empty() || path.contains('/') {
            return Err(url.broken(
                "the path after the hosts is the name of the database that keeps the locks, as in `mysql://HOST/shop`",
            ));
        }
        let database = decode(path)?;
        for (theirs, ours) in [("ssl-ca", "ca"), ("ssl-cert", "cert"), ("ssl-key", "key")] {
            url.rename(theirs, ours);
        }
        Ok(Self {
            hosts: authority.hosts,
            user: authority.user,
            password: authority.password,
            database,
            encrypted: encrypted(url)?,
            install: install(url)?,
        })
    }

    /// The credentials of a connection.
    pub(crate) fn login(&self) -> Option<Credentials> {
        let password = self.password.clone().unwrap_or_default();
        Some(Credentials::new(self.user.clone()?, password))
    }
}

/// Names the servers and never the password.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hosts: Vec<_> = self.hosts.iter().map(Host::to_string).collect();
        write!(f, "MySQL at {}/{}", hosts.join(","), self.database)
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
        let address = Address::parse(&mut url)?;
        url.finish()?;
        Ok(address)
    }

    #[test]
    fn a_url_names_servers_a_database_and_a_user() {
        for (text, shown, login) in [
            ("mysql://h/shop", "h:3306/shop", None),
            (
                "mariadb://me@h:1,[::1],i/shop",
                "h:1,[::1]:3306,i:3306/shop",
                Some(("me", "")),
            ),
            (
                "mysql://m%40e:p%2F%3A:q@h/a%20b",
                "h:3306/a b",
                Some(("m@e", "p/::q")),
            ),
        ] {
            let address = read(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(address.to_string(), format!("MySQL at {shown}"));
            let found = address.login();
            let found = found
                .as_ref()
                .map(|it| (it.user.as_deref().unwrap_or_default(), &*it.password));
            assert_eq!(found, login);
        }
    }

    #[test]
    fn an_error_says_what_is_wrong_and_never_the_password() {
        for (text, says) in [
            ("mysql://me:hunter2@/shop", "names no host"),
            ("mysql://me:hunter2@h", "as in `mysql://HOST/shop`"),
            ("mysql://me:hunter2@h/a/b", "as in `mysql://HOST/shop`"),
            ("mysql://:hunter2@h/shop", "a user with the password"),
            ("mysql://h/shop?schema=a", "no parameter `schema`"),
        ] {
            refused(read(text), says);
        }
    }

    #[test]
    fn an_error_names_the_parameter() {
        for (parameter, says) in [
            ("sslmode=prefer", "invalid sslmode: with `prefer`"),
            ("install=yes", "invalid install: it can only be"),
        ] {
            let error = read(&format!("mysql://h/shop?{parameter}")).unwrap_err();
            assert!(error.to_string().starts_with(says), "{error}");
        }
    }
}
