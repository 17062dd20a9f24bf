//! What the server has said and its replicas have not confirmed yet.

use std::time::Duration;

use crate::backend::redis::protocol::call::Ticket;
use crate::base::clock::Moment;

/// Grants and renewals.
#[derive(Debug, Default)]
pub(super) struct Unconfirmed {
    /// Since the replicas were last asked.
    pub(super) said: Vec<Said>,
    /// What they are being asked about.
    pub(super) asked: Vec<Said>,
}

/// The lock is ours for `ttl` from `since`.
#[derive(Debug)]
pub(super) struct Said {
    pub(super) ticket: Ticket,
    pub(super) since: Moment,
    pub(super) ttl: Duration,
}
