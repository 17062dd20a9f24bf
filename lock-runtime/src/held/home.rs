//! The receiver of a lease's release.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::types::answer::Answer;
use crate::types::error::LockError;
use crate::types::key::LockKey;
use crate::types::terms::{LeaseId, Terms};
use crate::types::ticket_id::TicketId;

/// Keeps leases alive and releases them.
pub(crate) trait Home: fmt::Debug + Send + Sync {
    /// Releases a lease; the answer says whether it was still held. Returns whether another task
    /// of this process has received the lock meanwhile, and has yet to run.
    fn release(&self, id: LeaseId, key: &LockKey, answer: Option<Answer<bool>>) -> bool;

    /// The same from a destructor, which may run when wakers of others must no longer be called.
    fn release_from_destructor(&self, id: LeaseId);

    /// Lets a ticket keep the lock of a lease closed for this time; the answer says whether the lock
    /// was still held.
    fn issue(&self, id: LeaseId, ticket: TicketId, time: Duration, answer: Answer<bool>);

    /// Lets a writer go on as a reader, with a lease of its own; the answer says whether the lock was
    /// still held.
    fn downgrade(&self, id: LeaseId, answer: Answer<bool>);

    /// The one name of a lock that may have several.
    fn name(&self, key: LockKey) -> Result<LockKey, LockError> {
        Ok(key)
    }

    /// Refuses where no writer can go on as a reader.
    fn check_downgrade(&self) -> Result<(), LockError>;

    /// Refuses where the store has no tickets.
    fn check_tickets(&self) -> Result<(), LockError>;

    /// Frees the lock of the ticket that these terms adopt, which has reached nobody. May be called
    /// in a destructor, too.
    fn take_back(&self, terms: Arc<Terms>);

    /// The last poll under an ended lease has returned. May be called in a destructor, too.
    fn poll_returned(&self, id: LeaseId);

    /// Delivers some of the answers that arrived for others. Called by a poll that has received
    /// its own answer.
    fn help_to_deliver(&self);
}

/// A home that keeps nothing.
#[cfg(test)]
#[derive(Debug)]
pub(crate) struct Nowhere;

#[cfg(test)]
impl Home for Nowhere {
    fn release(&self, _id: LeaseId, _key: &LockKey, _answer: Option<Answer<bool>>) -> bool {
        false
    }

    fn release_from_destructor(&self, _id: LeaseId) {}

    fn issue(&self, _id: LeaseId, _ticket: TicketId, _time: Duration, _answer: Answer<bool>) {}

    fn downgrade(&self, _id: LeaseId, _answer: Answer<bool>) {}

    fn check_downgrade(&self) -> Result<(), LockError> {
        Ok(())
    }

    fn check_tickets(&self) -> Result<(), LockError> {
        Ok(())
    }

    fn take_back(&self, _terms: Arc<Terms>) {}

    fn poll_returned(&self, _id: LeaseId) {}

    fn help_to_deliver(&self) {}
}
