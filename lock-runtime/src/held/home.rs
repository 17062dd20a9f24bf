//! What a lease calls when it is released.

use std::fmt;

use crate::types::answer::Answer;
use crate::types::key::LockKey;
use crate::types::terms::LeaseId;

/// Keeps leases alive and releases them.
pub(crate) trait Home: fmt::Debug + Send + Sync {
    /// Releases a lease; the answer says whether it was still held. Returns whether the lock
    /// has gone to somebody here meanwhile, who has yet to run.
    fn release(&self, id: LeaseId, key: &LockKey, answer: Option<Answer<bool>>) -> bool;

    /// The same from a destructor, which may run where wakers of others must not be
    /// called any more.
    fn release_from_destructor(&self, id: LeaseId);

    /// The last poll that ran under a lease has returned, and the lease has ended. May be
    /// called in a destructor, too.
    fn poll_returned(&self, id: LeaseId);

    /// Delivers some of the answers to others that arrived with one's own. For a poll that has
    /// got its answer.
    fn help_to_deliver(&self);
}

/// One that keeps nothing.
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
