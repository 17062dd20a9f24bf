//! What an error means for whoever called: whether and when to try again, and what
//! clients may be told.

use std::time::Duration;

use super::LockError;

/// Waiters hear once a second who holds the lock: nothing is known of what it does
/// in less time, and in more it may have changed hands.
const PAUSE: Duration = Duration::from_secs(1);
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);

impl LockError {
    /// Whether the same call may succeed later without a change to the program.
    /// [`Lost`](Self::Lost) is not: the work has begun.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Contended { .. } | Self::Unavailable { .. })
    }

    /// How long to wait before the next try; `None` where trying again is of no use.
    ///
    /// A lock that [rests](crate::Holder::resting) opens at a known time. Of one that
    /// is held, it is the rest of the holder's lease, and a second at the most: a
    /// lease is renewed while the work goes on, and says nothing about its end.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Contended { holder, .. } => {
                let rests = holder.as_ref().is_some_and(|holder| holder.resting);
                let rest = holder.as_ref().and_then(|holder| holder.remaining);
                let rest = rest.unwrap_or(PAUSE).max(SHORTEST_PAUSE);
                Some(if rests { rest } else { rest.min(PAUSE) })
            }
            Self::Unavailable { .. } => Some(PAUSE),
            _ => None,
        }
    }

    /// A sentence for clients: it names no key, host, process, function or server,
    /// all of which the error's own text may.
    pub fn public_message(&self) -> &'static str {
        match self {
            Self::Contended { .. } => {
                "somebody else is working on this at the moment: try again later"
            }
            Self::Unavailable { .. } | Self::ShutDown => {
                "the service is not available at the moment: try again later"
            }
            Self::InvalidKey { .. } => "a value in this request is missing or too long",
            Self::Lost { .. } => {
                "the work was interrupted and may have been done in part: \
                 look at its result before trying again"
            }
            Self::NotConfigured | Self::InvalidOptions { .. } | Self::AlreadyHeld { .. } => {
                "the service has made a mistake: trying again does not help"
            }
        }
    }
}
