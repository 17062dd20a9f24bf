//! The full names of locks in a database.

use crate::types::key::LockKey;

/// The names of one prefix.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    prefix: Box<str>,
}

impl Names {
    pub(crate) fn new(prefix: &str) -> Self {
        Self {
            prefix: prefix.into(),
        }
    }

    /// The full name of a lock.
    pub(crate) fn name(&self, key: &LockKey) -> Box<str> {
        format!("{}:{{{key}}}", self.prefix).into()
    }

    /// The lock with this full name.
    pub(crate) fn key(&self, name: &str) -> Option<LockKey> {
        let key = name.strip_prefix(&*self.prefix)?.strip_prefix(":{")?;
        key.strip_suffix('}').map(LockKey::unchecked)
    }
}
