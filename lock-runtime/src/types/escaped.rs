//! Makes a key from a name that is already escaped.

use crate::types::error::LockError;
use crate::types::key::LockKey;

impl LockKey {
    /// The key whose [`as_str`](Self::as_str) is `name`, for names that were stored,
    /// logged or read from the server.
    ///
    /// # Errors
    ///
    /// [`LockError::InvalidKey`] if `name` is not a correctly escaped name, is empty
    /// or is too long.
    pub fn from_escaped(name: &str) -> Result<Self, LockError> {
        Self::read_escaped(name).map_err(|reason| LockError::InvalidKey { reason })
    }
}
