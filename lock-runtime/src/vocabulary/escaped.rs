//! Makes a key of a name that is escaped already.

use crate::vocabulary::error::LockError;
use crate::vocabulary::key::LockKey;

impl LockKey {
    /// The key whose [`as_str`](Self::as_str) is `name`: for names that were
    /// stored, logged or read from the server.
    ///
    /// # Errors
    ///
    /// [`LockError::InvalidKey`] where `name` is not as escaping writes it, is
    /// empty or is too long.
    pub fn from_escaped(name: &str) -> Result<Self, LockError> {
        Self::read_escaped(name).map_err(|reason| LockError::InvalidKey { reason })
    }
}
