//! The locks that a chain of calls holds while it waits for another one.

use std::fmt;

use crate::types::fence::FencingToken;

/// How many locks an acquisition names at most, the innermost ones.
pub(crate) const MOST_ENCLOSING: usize = 8;

/// A lock under which an acquisition was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Enclosing {
    /// Identifies its acquisition in the store.
    pub(crate) token: u128,
    pub(crate) fence: u64,
}

/// As stores write it: `TOKEN:FENCE`.
impl fmt::Display for Enclosing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}:{}", self.token, self.fence)
    }
}

/// A lock that a waiter holds; see [`Waiter::holds`](crate::inspect::Waiter::holds).
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct HeldLock {
    /// Identifies the acquisition on the server, as [`Holder::id`](crate::inspect::Holder::id).
    pub id: Box<str>,
    /// Its fencing token.
    pub fencing_token: FencingToken,
}

impl HeldLock {
    pub(crate) fn new(id: impl Into<Box<str>>, fence: u64) -> Self {
        Self {
            id: id.into(),
            fencing_token: FencingToken::new(fence),
        }
    }

    /// In this process, where an acquisition has a number for an id.
    pub(crate) fn here(lock: &Enclosing) -> Self {
        Self::new(lock.token.to_string(), lock.fence)
    }

    /// Reads what stores write.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (id, fence) = text.split_once(':')?;
        Some(Self::new(id, fence.parse().ok()?))
    }
}
