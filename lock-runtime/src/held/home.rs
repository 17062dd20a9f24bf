//! The receiver of a lease's release.

use std::fmt;

use crate::types::answer::Answer;
use crate::types::key::LockKey;
use crate::types::terms::LeaseId;

/// Keeps leases alive and releases them.
pub(crate) trait Home: fmt::Debug + Send + Sync {
    /// Releases a lease; the answer says whether it was still held. Returns whether another task
    /// of this process has received the lock meanwhile, and has yet to run.
    fn release(&self, id: LeaseId, key: &LockKey, answer: Option<Answer<bool>>) -> bool;

    /// The same from a destructor, which may run when wakers of others must no longer be called.
    fn release_from_destructor(&self, id: LeaseId);

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

    fn poll_returned(&self, _id: LeaseId) {}

    fn help_to_deliver(&self) {}
}
