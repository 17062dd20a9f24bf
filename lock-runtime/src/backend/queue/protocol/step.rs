//! What a store adds to the calls of claims.

use std::fmt;

use tokio::sync::oneshot;

use super::trouble::Trouble;
use crate::types::key::LockKey;

/// A call of the store's own, such as a step of a query, which goes the way of all calls.
pub(crate) trait Step: fmt::Debug {
    /// The server's reply to it.
    type Answer: fmt::Debug;
    /// How a call has found its server, in a store that sends calls on from one server to another.
    type Route: fmt::Debug + Default;

    /// The lock that it may grant to a waiter. It is held back during a quarantine.
    fn may_grant(&self) -> Option<&LockKey>;

    /// The lock that it is about.
    fn key(&self) -> Option<&LockKey>;
}

/// The query that awaits the reply to a step.
pub(crate) type AskedBy<S> = oneshot::Sender<Result<<S as Step>::Answer, Trouble>>;
