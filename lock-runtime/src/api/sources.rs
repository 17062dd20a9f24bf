//! Where a configuration comes from: a URL or the environment.

use std::str::FromStr;

use crate::api::config::LockConfig;
use crate::api::named;
#[cfg(feature = "redis")]
use crate::backend::redis;
use crate::backend::target;
use crate::types::error::LockError;
use crate::types::url::Url;

impl LockConfig {
    /// The default settings for the locks at `url`.
    ///
    /// # Errors
    ///
    /// [`LockError::InvalidOptions`] if the URL is malformed, its scheme names no
    /// backend, or one of its parts or parameters is wrong.
    ///
    /// ```
    /// use lock_runtime::LockConfig;
    ///
    /// # fn main() -> Result<(), lock_runtime::LockError> {
    /// LockConfig::new("redis://cache.internal:6380/2?prefix=shop&ttl=30s")?;
    /// LockConfig::new("memory:")?;
    /// assert!(LockConfig::new("mysql://127.0.0.1").is_err());
    /// # Ok(()) }
    /// ```
    pub fn new(url: impl AsRef<str>) -> Result<Self, LockError> {
        let mut url = Url::parse(url.as_ref())?;
        let config = Self::at(target::parse(&mut url)?);
        named::from_url(config, url)
    }

    /// The default settings for the locks of a majority of 3, 5 or 7 independent servers
    /// (Redlock), each named by its own `redis://`, `rediss://` or `redis+unix://` URL. As
    /// with `redis+redlock://`, except that each server may have its own user, password
    /// and database. The URLs contain no settings.
    ///
    /// ```
    /// # fn example() -> Result<(), lock_runtime::LockError> {
    /// use std::time::Duration;
    /// use lock_runtime::LockConfig;
    ///
    /// let servers = ["redis://:secret1@redis-1", "redis://:secret2@redis-2", "redis://:secret3@redis-3"];
    /// let config = LockConfig::redlock(servers)?.quarantine(Duration::from_secs(30));
    /// # config.validate() }
    /// # example().unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// [`LockError::InvalidOptions`] if a URL is malformed or names no single server, if a
    /// server is named twice, or if there are not 3, 5 or 7.
    #[cfg(feature = "redis")]
    pub fn redlock<U: AsRef<str>>(servers: impl IntoIterator<Item = U>) -> Result<Self, LockError> {
        Ok(Self::at(redis::target::independent(servers)?))
    }

    /// The settings from the environment: `LOCK_URL`, and `LOCK_PREFIX`, `LOCK_TTL` and
    /// so on if they are set, which override those in the URL.
    ///
    /// # Errors
    ///
    /// [`LockError::InvalidOptions`] if `LOCK_URL` is missing, or it or another
    /// variable is invalid.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// use lock_runtime::{LockConfig, LockManager};
    ///
    /// match LockConfig::from_env() {
    ///     Ok(config) => drop(LockManager::connect(config.lazy()).await?),
    ///     Err(error) => assert!(error.to_string().contains("redis://127.0.0.1:6379")),
    /// }
    /// # Ok(()) }
    /// ```
    pub fn from_env() -> Result<Self, LockError> {
        let url = std::env::var("LOCK_URL").map_err(|_| {
            // The value is not shown, since there may be a password in it.
            LockError::invalid(
                "LOCK_URL",
                "it is not set, or not UTF-8 text; set it to a URL such as redis://127.0.0.1:6379",
            )
        })?;
        let config = named::from_env(Self::new(url)?)?;
        config.validate()?;
        Ok(config)
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
