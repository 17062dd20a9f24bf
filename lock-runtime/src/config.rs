//! The settings of a manager, checked when they are made.

use std::env::VarError;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::clock::Clock;
use crate::error::LockError;
use crate::terms::Wait;

/// The shortest lease.
pub(crate) const MIN_TTL: Duration = Duration::from_millis(100);
/// The longest lease.
pub(crate) const MAX_TTL: Duration = Duration::from_secs(24 * 60 * 60);

/// How to reach the locks, and what an acquisition asks for where it does not
/// say itself.
///
/// The scheme of the URL chooses the backend:
///
/// | URL | backend |
/// |---|---|
/// | `memory:` | in this process, one store for each manager |
/// | `memory:NAME` | in this process, shared by the managers of that name |
/// | `redis://[user:password@]host[:port][/db]` | a Redis server, 6.2 or newer, or Valkey |
/// | `redis+unix:///path[?db=1&user=…&pass=…]` | the same over a Unix socket |
#[derive(Clone)]
pub struct LockConfig {
    pub(crate) target: Target,
    pub(crate) prefix: Box<str>,
    pub(crate) ttl: Duration,
    pub(crate) wait: Wait,
    pub(crate) connect_timeout: Duration,
    pub(crate) shutdown_grace: Duration,
    pub(crate) pool_size: usize,
    pub(crate) clock: Clock,
}

#[derive(Clone)]
pub(crate) enum Target {
    Memory {
        name: Option<Box<str>>,
    },
    #[cfg(feature = "redis")]
    Redis(Box<redis::ConnectionInfo>),
}

impl LockConfig {
    /// The default settings for the locks at `url`.
    ///
    /// # Errors
    ///
    /// [`LockError::InvalidOptions`] where the URL is none, its scheme names no
    /// backend, or its database is not a number from 0.
    pub fn new(url: impl AsRef<str>) -> Result<Self, LockError> {
        Ok(Self {
            target: Target::parse(url.as_ref())?,
            prefix: "lock".into(),
            ttl: Duration::from_secs(10),
            wait: Wait::AtMost(Duration::from_secs(5)),
            connect_timeout: Duration::from_secs(5),
            shutdown_grace: Duration::from_secs(30),
            pool_size: 1,
            clock: Clock::machine(),
        })
    }

    /// The settings in the environment: `LOCK_URL`, and `LOCK_PREFIX` where set.
    ///
    /// # Errors
    ///
    /// [`LockError::InvalidOptions`] where `LOCK_URL` is missing, or one of them is
    /// invalid.
    pub fn from_env() -> Result<Self, LockError> {
        let url = std::env::var("LOCK_URL").map_err(|_| {
            // What it holds is not shown, there may be a password in it.
            LockError::invalid(
                "LOCK_URL",
                "it is not set, or no text; set it to a URL such as redis://127.0.0.1:6379",
            )
        })?;
        let config = Self::new(url)?;
        match std::env::var("LOCK_PREFIX") {
            Ok(prefix) => config.prefix(prefix),
            Err(VarError::NotPresent) => Ok(config),
            Err(VarError::NotUnicode(_)) => {
                Err(LockError::invalid("LOCK_PREFIX", "it is no UTF-8 text"))
            }
        }
    }

    /// What every key on the server begins with, `lock` by default: the locks
    /// of different prefixes are different locks.
    ///
    /// # Errors
    ///
    /// [`LockError::InvalidOptions`] where it is empty, longer than 128 bytes,
    /// or has a brace or a control character in it.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Result<Self, LockError> {
        let prefix = prefix.into();
        let usable = (1..=128).contains(&prefix.len())
            && !prefix.contains(|c: char| matches!(c, '{' | '}') || c.is_control());
        if !usable {
            return Err(LockError::invalid(
                "prefix",
                "it must have 1 to 128 bytes, no braces and no control characters",
            ));
        }
        self.prefix = prefix.into_boxed_str();
        Ok(self)
    }

    /// The lease of acquisitions that name none; 10 s by default.
    ///
    /// # Errors
    ///
    /// [`LockError::InvalidOptions`] outside 100 ms to 24 h.
    pub fn ttl(mut self, ttl: Duration) -> Result<Self, LockError> {
        check_ttl(ttl)?;
        self.ttl = ttl;
        Ok(self)
    }

    /// How long acquisitions that do not say wait for a held lock; 5 s by
    /// default, zero tries once.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = Wait::AtMost(wait);
        self
    }

    /// How long [`LockManager::connect`](crate::LockManager::connect) tries to
    /// reach the server; 5 s by default.
    ///
    /// # Errors
    ///
    /// [`LockError::InvalidOptions`] where it is zero.
    pub fn connect_timeout(mut self, timeout: Duration) -> Result<Self, LockError> {
        if timeout.is_zero() {
            return Err(LockError::invalid("connect_timeout", "it must not be zero"));
        }
        self.connect_timeout = timeout;
        Ok(self)
    }

    /// How long locked work may go on after a shutdown has begun; 30 s by
    /// default.
    pub fn shutdown_grace(mut self, grace: Duration) -> Self {
        self.shutdown_grace = grace;
        self
    }

    /// How many connections the manager keeps; 1 by default, which is the
    /// fastest up to about a hundred thousand operations a second. Each key is
    /// bound to one of them.
    ///
    /// # Errors
    ///
    /// [`LockError::InvalidOptions`] outside 1 to 64.
    pub fn pool_size(mut self, connections: usize) -> Result<Self, LockError> {
        if !(1..=64).contains(&connections) {
            return Err(LockError::invalid("pool_size", "it must be 1 to 64"));
        }
        self.pool_size = connections;
        Ok(self)
    }

    /// The clock that leases are measured with; the machine's by default.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }
}

pub(crate) fn check_ttl(ttl: Duration) -> Result<(), LockError> {
    if (MIN_TTL..=MAX_TTL).contains(&ttl) {
        Ok(())
    } else {
        Err(LockError::invalid(
            "ttl",
            format_args!("{ttl:?} is not between 100ms and 24h"),
        ))
    }
}

impl Target {
    fn parse(url: &str) -> Result<Self, LockError> {
        let (scheme, rest) = url.split_once(':').unwrap_or(("", url));
        match scheme {
            "memory" => Ok(Self::Memory {
                name: (!rest.is_empty()).then(|| rest.into()),
            }),
            "redis" | "redis+unix" => Self::parse_redis(url),
            // The URL is not shown, there may be a password in it.
            _ => Err(LockError::invalid(
                "url",
                "it must begin with `memory:`, `redis://` or `redis+unix://`",
            )),
        }
    }

    #[cfg(feature = "redis")]
    fn parse_redis(url: &str) -> Result<Self, LockError> {
        use redis::IntoConnectionInfo as _;

        let info = url
            .into_connection_info()
            .map_err(|error| LockError::invalid("url", error.category()))?;
        if info.redis_settings().db() < 0 {
            return Err(LockError::invalid(
                "url",
                "the database must be a number from 0",
            ));
        }
        Ok(Self::Redis(Box::new(info)))
    }

    #[cfg(not(feature = "redis"))]
    fn parse_redis(_url: &str) -> Result<Self, LockError> {
        Err(LockError::invalid(
            "url",
            "lock-runtime was built without its feature `redis`",
        ))
    }
}

impl FromStr for LockConfig {
    type Err = LockError;

    fn from_str(url: &str) -> Result<Self, LockError> {
        Self::new(url)
    }
}

impl TryFrom<&str> for LockConfig {
    type Error = LockError;

    fn try_from(url: &str) -> Result<Self, LockError> {
        Self::new(url)
    }
}

impl TryFrom<String> for LockConfig {
    type Error = LockError;

    fn try_from(url: String) -> Result<Self, LockError> {
        Self::new(url)
    }
}

impl TryFrom<&String> for LockConfig {
    type Error = LockError;

    fn try_from(url: &String) -> Result<Self, LockError> {
        Self::new(url)
    }
}

impl fmt::Debug for LockConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockConfig")
            .field("target", &self.target)
            .field("prefix", &self.prefix)
            .field("ttl", &self.ttl)
            .field("wait", &self.wait)
            .field("connect_timeout", &self.connect_timeout)
            .field("shutdown_grace", &self.shutdown_grace)
            .field("pool_size", &self.pool_size)
            .field("clock", &self.clock)
            .finish()
    }
}

/// Names the place and never the password.
impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory { name } => write!(f, "memory:{}", name.as_deref().unwrap_or("")),
            #[cfg(feature = "redis")]
            Self::Redis(info) => write!(f, "redis at {}", info.addr()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_setting() {
        let config = || LockConfig::new("memory:").expect("a valid URL");
        for (setting, error) in [
            ("url", LockConfig::new("http://x").expect_err("no backend")),
            ("ttl", config().ttl(Duration::ZERO).expect_err("zero")),
            ("prefix", config().prefix("a{b").expect_err("brace")),
            ("pool_size", config().pool_size(0).expect_err("zero")),
            (
                "connect_timeout",
                config().connect_timeout(Duration::ZERO).expect_err("zero"),
            ),
        ] {
            let text = error.to_string();
            assert!(text.starts_with(&format!("invalid {setting}: ")), "{text}");
        }
    }

    #[cfg(feature = "redis")]
    #[test]
    fn no_text_shows_the_password() {
        let config = LockConfig::new("redis://me:hunter2@127.0.0.1:1/3").expect("a valid URL");
        assert!(!format!("{config:?}").contains("hunter2"));
        for url in [
            "http://me:hunter2@x",
            "redis://me:hunter2@h:port/",
            "me:hunter2",
        ] {
            let error = LockConfig::new(url).expect_err("not a valid URL");
            assert!(!format!("{error} {error:?}").contains("hunter2"));
        }
    }
}
