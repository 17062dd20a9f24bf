//! Names of locks as users write them.

use lock_runtime::LockKey;

/// The lock of that name: as `ls` shows it, or as a program gives it.
pub(crate) fn key(text: &str) -> LockKey {
    LockKey::from_escaped(text).unwrap_or_else(|_| LockKey::from(text))
}
