//! Names of locks as arguments: keys, and text that becomes one.

use std::str::FromStr;

use crate::types::error::LockError;
use crate::types::key::LockKey;

/// The name of a lock as an argument: a [`LockKey`], text, or the result of [`key!`](crate::key!).
///
/// Invalid text fails with [`LockError::InvalidKey`], which requests report when they
/// [acquire](crate::LockRequest::acquire).
///
/// ```
/// use lock_runtime::{IntoKey, LockError, LockKey};
///
/// struct Item(u32);
///
/// impl IntoKey for &Item {
///     fn into_key(self) -> Result<LockKey, LockError> {
///         LockKey::new(format!("stock:{}", self.0))
///     }
/// }
///
/// # async fn example() -> Result<(), LockError> {
/// # let locks = lock_runtime::LockManager::connect("memory:").await?;
/// let guard = locks.lock(&Item(7)).acquire().await?;
/// assert_eq!(guard.key(), "stock:7");
/// # Ok(()) }
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(example()).unwrap();
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not name a lock",
    label = "neither a `LockKey` nor text",
    note = "pass a `LockKey`, a string, or `key!(\"…\")`"
)]
pub trait IntoKey {
    /// The key.
    ///
    /// # Errors
    ///
    /// [`LockError::InvalidKey`] if it is empty or longer than 1024 bytes.
    fn into_key(self) -> Result<LockKey, LockError>;
}

impl LockKey {
    /// The key for `text`, which is escaped.
    ///
    /// # Errors
    ///
    /// [`LockError::InvalidKey`] if `text` is empty, or longer than 1024 bytes when it is escaped.
    ///
    /// ```
    /// use lock_runtime::LockKey;
    ///
    /// # fn main() -> Result<(), lock_runtime::LockError> {
    /// let key = LockKey::new("50%")?;
    /// assert_eq!(key.as_str(), "50%25");
    /// assert!(LockKey::new("").is_err());
    /// # Ok(()) }
    /// ```
    pub fn new(text: impl AsRef<str>) -> Result<Self, LockError> {
        Self::read(text.as_ref()).map_err(invalid)
    }

    /// The key whose [`as_str`](Self::as_str) is `name`, for names that were stored,
    /// logged or read from the server.
    ///
    /// # Errors
    ///
    /// [`LockError::InvalidKey`] if `name` is not a correctly escaped name, is empty
    /// or is too long.
    ///
    /// ```
    /// use lock_runtime::LockKey;
    ///
    /// # fn main() -> Result<(), lock_runtime::LockError> {
    /// let logged = LockKey::new("50%")?.to_string();
    /// assert_eq!(LockKey::from_escaped(&logged)?, LockKey::new("50%")?);
    /// # Ok(()) }
    /// ```
    pub fn from_escaped(name: &str) -> Result<Self, LockError> {
        Self::read_escaped(name).map_err(invalid)
    }
}

fn invalid(reason: &'static str) -> LockError {
    LockError::InvalidKey { reason }
}

/// The same key.
impl IntoKey for LockKey {
    fn into_key(self) -> Result<LockKey, LockError> {
        Ok(self)
    }
}

/// The same key.
impl IntoKey for &LockKey {
    fn into_key(self) -> Result<LockKey, LockError> {
        Ok(self.clone())
    }
}

/// The result of [`key!`](crate::key!).
impl IntoKey for Result<LockKey, LockError> {
    fn into_key(self) -> Result<LockKey, LockError> {
        self
    }
}

/// Text, escaped by [`LockKey::new`]. `LockKey` does not implement `AsRef<str>`, so that it cannot
/// be escaped again by accident.
impl<T: AsRef<str> + ?Sized> IntoKey for &T {
    fn into_key(self) -> Result<LockKey, LockError> {
        LockKey::new(self)
    }
}

/// Text, escaped by [`LockKey::new`].
impl IntoKey for String {
    fn into_key(self) -> Result<LockKey, LockError> {
        LockKey::new(self)
    }
}

/// As [`LockKey::new`].
impl FromStr for LockKey {
    type Err = LockError;

    fn from_str(text: &str) -> Result<Self, LockError> {
        Self::new(text)
    }
}

/// As [`LockKey::new`].
impl TryFrom<&str> for LockKey {
    type Error = LockError;

    fn try_from(text: &str) -> Result<Self, LockError> {
        Self::new(text)
    }
}

/// As [`LockKey::new`].
impl TryFrom<String> for LockKey {
    type Error = LockError;

    fn try_from(text: String) -> Result<Self, LockError> {
        Self::new(text)
    }
}
