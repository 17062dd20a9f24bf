//! Names of locks as users write them.

use lock_runtime::{LockError, LockKey};

/// The lock of that name: as `ls` shows it, or as a program gives it.
pub(crate) fn key(text: &str) -> Result<LockKey, LockError> {
    LockKey::from_escaped(text).or_else(|_| LockKey::new(text))
}
