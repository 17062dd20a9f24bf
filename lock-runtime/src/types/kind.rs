//! The kinds of locks: which holders may share one.

use std::fmt;

/// The kind of a lock decides which holders may share it. Different kinds exclude each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// One holder; also the kind of writers.
    Exclusive,
    /// Any number of them.
    Read,
    /// Up to this many at once.
    Permits(u32),
}

impl Kind {
    /// Whether a holder of this kind may also do the work of `other`.
    pub(crate) fn covers(self, other: Self) -> bool {
        self == Self::Exclusive || self == other
    }

    /// Whether another holder may enter beside this many of this kind.
    pub(crate) fn admits(self, holders: usize) -> bool {
        match self {
            Self::Exclusive => holders == 0,
            Self::Read => true,
            Self::Permits(most) => u64::try_from(holders).unwrap_or(u64::MAX) < u64::from(most),
        }
    }
}

/// `exclusive`, `read` or `4 permits`.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exclusive => f.write_str("exclusive"),
            Self::Read => f.write_str("read"),
            Self::Permits(1) => f.write_str("1 permit"),
            Self::Permits(permits) => write!(f, "{permits} permits"),
        }
    }
}
