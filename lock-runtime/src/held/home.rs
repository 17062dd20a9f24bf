//! Where a lease goes when it is let go.

use std::fmt;

use crate::vocabulary::answer::Answer;
use crate::vocabulary::terms::LeaseId;

/// Whoever keeps leases alive and lets them go.
pub(crate) trait Home: fmt::Debug + Send + Sync {
    /// Lets a lease go; the answer says whether it was held until then.
    fn release(&self, id: LeaseId, answer: Option<Answer<bool>>);

    /// The same from a destructor, which may run where nothing of what others
    /// have registered may be called any more.
    fn release_from_destructor(&self, id: LeaseId);
}

/// One that keeps nothing.
#[cfg(test)]
#[derive(Debug)]
pub(crate) struct Nowhere;

#[cfg(test)]
impl Home for Nowhere {
    fn release(&self, _id: LeaseId, _answer: Option<Answer<bool>>) {}

    fn release_from_destructor(&self, _id: LeaseId) {}
}
