//! The last of our acquisitions in the queue of each lock.

use std::collections::HashMap;

use super::claim::Claim;
use crate::backend::claims::Claims;
use crate::types::key::LockKey;
use crate::types::terms::LeaseId;

/// The acquisition of ours that came last in each queue.
#[derive(Default)]
pub(super) struct Tails(HashMap<LockKey, LeaseId>);

impl Tails {
    /// Another one comes; gives out the one before it.
    pub(super) fn add(
        &mut self,
        key: &LockKey,
        id: LeaseId,
        claims: &Claims<Claim>,
    ) -> Option<LeaseId> {
        if self.0.len() > 2 * claims.len() + 16 {
            self.0.retain(|_, id| claims.contains(*id));
        }
        let before = self.0.insert(key.clone(), id)?;
        (before != id && claims.contains(before)).then_some(before)
    }
}
