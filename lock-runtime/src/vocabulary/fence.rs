//! The number that tells a later acquisition from an earlier one.

use std::fmt;

/// A number that is larger for every later acquisition of the same lock.
///
/// Send it along with every write; a database that rejects numbers lower than
/// the highest it has seen accepts no write of a holder that was overtaken.
/// See Martin Kleppmann, *How to do distributed locking* (2016).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FencingToken(u64);

impl FencingToken {
    pub(crate) fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number itself; it fits a signed 64-bit column.
    pub fn get(self) -> u64 {
        self.0
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
