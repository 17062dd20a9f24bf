//! Where a configuration comes from: a URL or the environment.

use std::str::FromStr;

use crate::backend::target;
use crate::face::config::LockConfig;
use crate::face::named;
use crate::vocabulary::error::LockError;
use crate::vocabulary::url::Url;

impl LockConfig {
    /// The default settings for the locks at `url`.
    ///
    /// # Errors
    ///
    /// [`LockError::InvalidOptions`] if the URL is malformed, its scheme names no
    /// backend, or one of its parts or parameters is wrong.
    pub fn new(url: impl AsRef<str>) -> Result<Self, LockError> {
        let mut url = Url::parse(url.as_ref())?;
        let config = Self::at(target::parse(&mut url)?);
        named::from_url(config, url)
    }

    /// The settings from the environment: `LOCK_URL`, and `LOCK_PREFIX`, `LOCK_TTL` and
    /// so on if they are set, which override those in the URL.
    ///
    /// # Errors
    ///
    /// [`LockError::InvalidOptions`] if `LOCK_URL` is missing, or it or another
    /// variable is invalid.
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
