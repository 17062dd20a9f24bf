//! Replies to calls, as values.

use std::time::Duration;

use super::ahead::Ahead;
use super::call::Call;
use super::step::Step;

/// What the server replied.
#[derive(Debug)]
pub(crate) enum Reply<S: Step> {
    Granted {
        fence: u64,
    },
    Waiting {
        position: u64,
        ahead: Ahead,
    },
    Busy {
        ahead: Ahead,
    },
    /// It is ours if that is still so after this time.
    Taken {
        left: Duration,
    },
    Gone,
    /// There is no such ticket to adopt.
    NoTicket,
    Asked {
        ahead: Ahead,
        standings: Vec<Standing>,
    },
    Ours(bool),
    /// The reply to a step, which its query reads.
    Step(S::Answer),
}

/// Where one of the tokens in an `Ask` stands.
#[derive(Debug)]
pub(crate) enum Standing {
    Granted { fence: u64 },
    Waiting,
    Gone,
}

impl<S: Step> Call<S> {
    /// Whether this answer says that a lock is ours.
    pub(crate) fn is_held_by(&self, reply: &Reply<S>) -> bool {
        match (self, reply) {
            (Self::Acquire { .. }, Reply::Granted { .. })
            | (Self::Renew { .. }, Reply::Ours(true)) => true,
            (Self::Ask(_), Reply::Asked { standings, .. }) => {
                let granted = |it: &Standing| matches!(it, Standing::Granted { .. });
                standings.iter().any(granted)
            }
            _ => false,
        }
    }
}
