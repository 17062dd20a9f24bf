//! The addresses of the servers, the user, and the schema of the locks, read from a
//! URL.

use std::fmt;

use crate::backend::sql::parameters::{Install, encrypted, install, one_of};
use crate::types::authority::{Authority, Host};
use crate::types::credentials::Credentials;
use crate::types::error::LockError;
use crate::types::url::{Url, decode};

const DEFAULT_PORT: u16 = 5432;
const DEFAULT_SCHEMA: &str = "lock_runtime";
/// Longer names are cut off by the server.
const LONGEST_NAME: usize = 63;

/// Servers of which one writes, and a schema in one of their databases.
#[derive(Clone)]
pub(crate) struct Address {
    /// In the order in which they are tried.
    pub(crate) hosts: Vec<Host>,
    pub(crate) encrypted: bool,
    pub(crate) user: Option<String>,
    password: Option<String>,
    /// `None` for the one that is named as the user.
    pub(crate) database: Option<String>,
    pub(crate) schema: Box<str>,
    pub(crate) install: Install,
    /// `None`: as the server allows.
    pub(crate) wake: Option<Wake>,
    pub(crate) commit: Commit,
}

/// How waiters learn that a lock has been handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wake {
    /// By notifications.
    Listen,
    /// They ask again and again.
    Poll,
}

/// Whether grants wait until the server has written them to its disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Commit {
    Sync,
    Async,
}

impl Address {
    /// Reads `//[user[:password]@]host[:port][,host[:port]…][/database]` and its parameters.
    pub(crate) fn parse(url: &mut Url) -> Result<Self, LockError> {
        let (authority, path) = Authority::parse(url, DEFAULT_PORT)?;
        if authority.user.is_none() && authority.password.is_some() {
            return Err(url.broken("PostgreSQL wants a user with the password"));
        }
        if path.contains('/') {
            return Err(url.broken(
                "the path after the hosts is the name of a database, as in `postgres://HOST/shop`",
            ));
        }
        let database = Some(decode(path)?).filter(|it| !it.is_empty());
        for (theirs, ours) in [
            ("sslrootcert", "ca"),
            ("sslcert", "cert"),
            ("sslkey", "key"),
        ] {
            url.rename(theirs, ours);
        }
        Ok(Self {
            hosts: authority.hosts,
            user: authority.user,
            password: authority.password,
            database,
            encrypted: encrypted(url)?,
            schema: schema(url)?,
            install: install(url)?,
            wake: one_of(
                url,
                "wake",
                &[("listen", Wake::Listen), ("poll", Wake::Poll)],
            )?,
            commit: one_of(
                url,
                "commit",
                &[("sync", Commit::Sync), ("async", Commit::Async)],
            )?
            .unwrap_or(Commit::Sync),
        })
    }

    /// The credentials of a connection.
    pub(crate) fn login(&self) -> Option<Credentials> {
        let password = self.password.clone().unwrap_or_default();
        Some(Credentials::new(self.user.clone()?, password))
    }
}

/// People write the name in their own SQL, without quotes.
fn schema(url: &mut Url) -> Result<Box<str>, LockError> {
    let Some(name) = url.take("schema")? else {
        return Ok(DEFAULT_SCHEMA.into());
    };
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let begins = |c: char| is_plain(c) && !c.is_ascii_digit();
    if !name.starts_with(begins) || !name.chars().all(is_plain) || name.len() > LONGEST_NAME {
        let reason = "it must be 1 to 63 letters a to z, digits and `_`, and begin with no digit";
        return Err(LockError::invalid("schema", reason));
    }
    if name.starts_with("pg_") {
        let reason = "names that begin with `pg_` belong to PostgreSQL";
        return Err(LockError::invalid("schema", reason));
    }
    Ok(name.into())
}

/// Names the servers and never the password.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hosts: Vec<_> = self.hosts.iter().map(Host::to_string).collect();
        write!(f, "PostgreSQL at {}", hosts.join(","))?;
        match &self.database {
            Some(database) => write!(f, "/{database}"),
            None => Ok(()),
        }
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
            ("postgres://h", "h:5432", None),
            ("postgresql://h/", "h:5432", None),
            (
                "postgres://me@h:1,[::1],i/shop",
                "h:1,[::1]:5432,i:5432/shop",
                Some(("me", "")),
            ),
            (
                "postgres://m%40e:p%2F%3A:q@h/a%20b",
                "h:5432/a b",
                Some(("m@e", "p/::q")),
            ),
        ] {
            let address = read(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(address.to_string(), format!("PostgreSQL at {shown}"));
            let found = address.login();
            let found = found
                .as_ref()
                .map(|it| (it.user.as_deref().unwrap_or_default(), &*it.password));
            assert_eq!(found, login);
        }
    }

    #[test]
    fn parameters_set_what_they_say() {
        let plain = read("postgres://h").expect("an address");
        assert!(!plain.encrypted && &*plain.schema == "lock_runtime" && plain.wake.is_none());
        assert_eq!((plain.install, plain.commit), (Install::Auto, Commit::Sync));
        let set =
            "postgres://h?sslmode=disable&schema=locks_2&install=never&wake=poll&commit=async";
        let set = read(set).expect("an address");
        assert!(!set.encrypted && &*set.schema == "locks_2" && set.wake == Some(Wake::Poll));
        assert_eq!((set.install, set.commit), (Install::Never, Commit::Async));
    }

    #[cfg(feature = "tls")]
    #[test]
    fn every_mode_that_encrypts_also_verifies() {
        for mode in ["require", "verify-ca", "verify-full"] {
            let mut url =
                Url::parse(&format!("postgres://h?sslmode={mode}&sslrootcert=a")).expect("a URL");
            assert!(Address::parse(&mut url).expect("an address").encrypted);
            assert_eq!(url.take("ca").expect("once").as_deref(), Some("a"));
        }
    }

    #[test]
    fn an_error_says_what_is_wrong_and_never_the_password() {
        for (text, says) in [
            ("postgres://me:hunter2@", "names no host"),
            ("postgres://me:hunter2@h:0", "number from 1 to 65535"),
            ("postgres://:hunter2@h", "a user with the password"),
            ("postgres://me:hun/ter2@h", "`%2F` for `/`"),
            ("postgres://me:hunter2@h/a/b", "the name of a database"),
            ("postgres://h?options=-c", "no parameter `options`"),
        ] {
            refused(read(text), says);
        }
    }

    #[test]
    fn an_error_names_the_parameter() {
        for (parameter, says) in [
            ("sslmode=prefer", "invalid sslmode: with `prefer`"),
            ("sslmode=yes", "invalid sslmode: it can only be"),
            ("schema=a-b", "invalid schema: it must be"),
            ("schema=", "invalid schema: it must be"),
            ("schema=1a", "begin with no digit"),
            ("schema=Locks", "letters a to z"),
            ("schema=pg_locks", "belong to PostgreSQL"),
            (
                "install=yes",
                "invalid install: it can only be `auto` or `never`",
            ),
            (
                "wake=push",
                "invalid wake: it can only be `listen` or `poll`",
            ),
            (
                "commit=off",
                "invalid commit: it can only be `sync` or `async`",
            ),
        ] {
            let error = read(&format!("postgres://h?{parameter}")).expect_err(parameter);
            assert!(error.to_string().contains(says), "{error}");
        }
    }
}
