//! What an error means for the caller: whether and when to try again, and what a
//! service may show to its clients.

use std::time::Duration;

use super::LockError;

/// Waiters hear once a second who holds the lock: in more time it may have changed
/// hands.
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
    /// Of a lock that others wait for, it is an estimate of the turn. The queue serves `n`
    /// waiters in the time for which the first of `n` waiters has waited; with the holder
    /// there are `n + 1` before a newcomer:
    ///
    /// ```text
    /// retry_after = (n + 1) · (how long the first has waited) / n
    /// ```
    ///
    /// It is at least 10 ms and at most 1 s. If nobody else waits, it is the rest of
    /// the holder's lease, within the same bounds: a lease is renewed while the work
    /// goes on, and does not say when it ends. A lock that
    /// [cools down](crate::inspect::Holder::cooling_down) opens at a known time, and this
    /// is what is left of it.
    ///
    /// For [`Unavailable`](Self::Unavailable) it is 1 s.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Contended { holder, .. } => {
                let Some(holder) = holder else {
                    return Some(PAUSE);
                };
                let left = holder.remaining.unwrap_or(PAUSE).max(SHORTEST_PAUSE);
                if holder.cooling_down {
                    return Some(left);
                }
                let turn = holder.crowd.turn().unwrap_or(left);
                Some(turn.clamp(SHORTEST_PAUSE, PAUSE))
            }
            Self::Unavailable { .. } => Some(PAUSE),
            _ => None,
        }
    }

    /// A sentence for clients: it names no key, host, process, function or server,
    /// all of which the error's own text may.
    pub fn public_message(&self) -> &'static str {
        match self {
            Self::Contended {
                holder: Some(holder),
                ..
            } if holder.cooling_down => {
                "this was done a short time ago and cannot be repeated yet: try again later"
            }
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
            Self::InvalidTicket { .. } => {
                "this is over, or somebody else has taken it over: begin again if it has not been done"
            }
            Self::NotConfigured
            | Self::AlreadyInstalled
            | Self::InvalidOptions { .. }
            | Self::AlreadyHeld { .. } => {
                "the service has made a mistake: trying again does not help"
            }
        }
    }
}
