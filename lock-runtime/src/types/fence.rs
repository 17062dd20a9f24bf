//! Fencing tokens: numbers that order the acquisitions of a lock.

use std::fmt;

/// A number that grows with the acquisitions of a lock: that of a writer is larger than all before.
///
/// Send it with every write: a database that rejects numbers lower than the highest of a writer that it has seen
/// accepts no write of an overtaken holder. Holders that share the lock may have the same number. See Martin Kleppmann,
/// *How to do distributed locking* (2016).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct FencingToken(u64);

impl FencingToken {
    pub(crate) fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number itself.
    pub fn get(self) -> u64 {
        self.0
    }

    /// The number for a signed 64-bit column, which it always fits: it comes from signed integers
    /// of the server, or from a count in memory.
    ///
    /// ```
    /// # let locks = lock_runtime::LockManager::connect_blocking("memory:")?;
    /// let guard = locks.lock("stock:lamp").acquire_blocking()?;
    /// let column: i64 = guard.fencing_token().as_i64();
    /// assert!(column > 0);
    /// # Ok::<_, lock_runtime::LockError>(())
    /// ```
    pub fn as_i64(self) -> i64 {
        i64::try_from(self.0).unwrap_or(i64::MAX)
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<FencingToken> for u64 {
    fn from(token: FencingToken) -> Self {
        token.0
    }
}

impl From<FencingToken> for i64 {
    fn from(token: FencingToken) -> Self {
        token.as_i64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_a_number_of_either_sign() {
        for number in [0, 1, i64::MAX] {
            let token = FencingToken::new(number.unsigned_abs());
            assert_eq!((token.as_i64(), i64::from(token)), (number, number));
            assert_eq!(token.get(), u64::from(token));
        }
        assert_eq!(FencingToken::new(u64::MAX).as_i64(), i64::MAX);
    }
}
