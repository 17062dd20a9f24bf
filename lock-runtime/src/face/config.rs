//! The settings of a manager, checked before it connects.

use std::env::VarError;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use crate::backend::setup::Setup;
use crate::backend::{Target, target};
use crate::base::clock::Clock;
use crate::face::bounds;
use crate::vocabulary::error::LockError;
use crate::vocabulary::terms::Wait;

/// How to reach the locks, and the defaults of acquisitions.
///
/// The scheme of the URL chooses the backend:
///
/// | URL | backend |
/// |---|---|
/// | `memory:` | in this process, one store for each manager |
/// | `memory:NAME` | in this process, shared by the managers of that name |
/// | `redis://[user:password@]host[:port][/db]` | a Redis server, 6.2 or newer, or Valkey |
/// | `redis+unix:///path[?db=1&user=…&pass=…]` | the same over a Unix socket |
///
/// The setters accept any value: [`connect`](crate::LockManager::connect) and
/// [`init`](crate::init()) check them with [`validate`](Self::validate) before
/// they open a connection.
///
/// ```
/// # fn example() -> Result<(), lock_runtime::LockError> {
/// use std::time::Duration;
/// use lock_runtime::LockConfig;
///
/// let config = LockConfig::new("memory:")?
///     .prefix("shop")
///     .ttl(Duration::from_secs(30))
///     .wait_forever();
/// config.validate()?;
/// # Ok(()) }
/// # example().unwrap();
/// ```
#[derive(Clone)]
#[must_use = "a configuration does nothing before `connect` or `init`"]
pub struct LockConfig {
    pub(crate) target: Arc<dyn Target>,
    pub(crate) prefix: Box<str>,
    pub(crate) ttl: Duration,
    pub(crate) wait: Wait,
    pub(crate) connect_timeout: Duration,
    pub(crate) shutdown_grace: Duration,
    pub(crate) pool_size: usize,
    pub(crate) clock: Clock,
}

impl LockConfig {
    /// The default settings for the locks at `url`.
    ///
    /// # Errors
    ///
    /// [`LockError::InvalidOptions`] if the URL is malformed, its scheme names no
    /// backend, or its database is not a number from 0.
    pub fn new(url: impl AsRef<str>) -> Result<Self, LockError> {
        Ok(Self {
            target: target::parse(url.as_ref())?,
            prefix: "lock".into(),
            ttl: Duration::from_secs(10),
            wait: Wait::AtMost(Duration::from_secs(5)),
            connect_timeout: Duration::from_secs(5),
            shutdown_grace: Duration::from_secs(30),
            pool_size: 1,
            clock: Clock::machine(),
        })
    }

    /// The settings from the environment: `LOCK_URL`, and `LOCK_PREFIX` if it is set.
    ///
    /// # Errors
    ///
    /// [`LockError::InvalidOptions`] if `LOCK_URL` is missing or invalid, or
    /// `LOCK_PREFIX` is invalid.
    pub fn from_env() -> Result<Self, LockError> {
        let url = std::env::var("LOCK_URL").map_err(|_| {
            // The value is not shown, since there may be a password in it.
            LockError::invalid(
                "LOCK_URL",
                "it is not set, or not UTF-8 text; set it to a URL such as redis://127.0.0.1:6379",
            )
        })?;
        let config = Self::new(url)?;
        let config = match std::env::var("LOCK_PREFIX") {
            Ok(prefix) => config.prefix(prefix),
            Err(VarError::NotPresent) => config,
            Err(VarError::NotUnicode(_)) => {
                return Err(LockError::invalid("LOCK_PREFIX", "it is not UTF-8 text"));
            }
        };
        config.validate()?;
        Ok(config)
    }

    /// What every key on the server begins with, `lock` by default: locks of
    /// different prefixes are different locks. 1 to 128 bytes, no braces and no
    /// control characters.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into().into_boxed_str();
        self
    }

    /// The lease of acquisitions that set none, 100 ms to 24 h; 10 s by default.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// How long acquisitions wait for a held lock if they do not say; 5 s by
    /// default, zero tries once.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = Wait::AtMost(wait);
        self
    }

    /// Acquisitions that do not say how long wait without a limit.
    pub fn wait_forever(mut self) -> Self {
        self.wait = Wait::Forever;
        self
    }

    /// How long [`LockManager::connect`](crate::LockManager::connect) tries to
    /// reach the server, more than zero; 5 s by default.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// How long locked work may go on after a shutdown has begun; 30 s by
    /// default.
    pub fn shutdown_grace(mut self, grace: Duration) -> Self {
        self.shutdown_grace = grace;
        self
    }

    /// How many connections the manager keeps, 1 to 64; 1 by default, which is
    /// the fastest up to about a hundred thousand operations a second. Each key
    /// is bound to one of them.
    pub fn pool_size(mut self, connections: usize) -> Self {
        self.pool_size = connections;
        self
    }

    /// The clock that leases are measured with; the machine's by default.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Checks the settings without connecting.
    ///
    /// # Errors
    ///
    /// [`LockError::InvalidOptions`] with the name of the first setting that is
    /// out of its range.
    pub fn validate(&self) -> Result<(), LockError> {
        let foreign = |c: char| matches!(c, '{' | '}') || c.is_control();
        if !(1..=128).contains(&self.prefix.len()) || self.prefix.contains(foreign) {
            return Err(LockError::invalid(
                "prefix",
                "it must have 1 to 128 bytes, no braces and no control characters",
            ));
        }
        bounds::check_ttl(self.ttl)?;
        if self.connect_timeout.is_zero() {
            return Err(LockError::invalid("connect_timeout", "it must not be zero"));
        }
        if !(1..=64).contains(&self.pool_size) {
            return Err(LockError::invalid("pool_size", "it must be 1 to 64"));
        }
        Ok(())
    }

    /// The part of it that a store needs.
    pub(crate) fn setup(&self) -> Setup {
        Setup {
            prefix: self.prefix.clone(),
            connect_timeout: self.connect_timeout,
            pool_size: self.pool_size,
            clock: self.clock.clone(),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    fn config() -> LockConfig {
        LockConfig::new("memory:").expect("a valid URL")
    }

    #[test]
    fn errors_name_the_setting() {
        let second = Duration::from_secs(1);
        for (setting, config) in [
            ("url", LockConfig::new("http://x")),
            ("prefix", Ok(config().prefix(""))),
            ("prefix", Ok(config().prefix("a{b"))),
            ("prefix", Ok(config().prefix("a\nb"))),
            ("prefix", Ok(config().prefix("x".repeat(129)))),
            ("ttl", Ok(config().ttl(second / 11))),
            ("ttl", Ok(config().ttl(DAY + second))),
            (
                "connect_timeout",
                Ok(config().connect_timeout(Duration::ZERO)),
            ),
            ("pool_size", Ok(config().pool_size(0))),
            ("pool_size", Ok(config().pool_size(65))),
        ] {
            let result = config.and_then(|config| config.validate());
            let text = result.expect_err(setting).to_string();
            assert!(text.starts_with(&format!("invalid {setting}: ")), "{text}");
        }
    }

    #[test]
    fn settings_at_the_ends_of_their_ranges_are_valid() {
        let least = config()
            .prefix("x")
            .ttl(Duration::from_millis(100))
            .pool_size(1);
        let least = least.connect_timeout(Duration::from_nanos(1));
        let most = config().prefix("x".repeat(128)).ttl(DAY).pool_size(64);
        for config in [config(), least, most] {
            config.validate().expect("valid");
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
