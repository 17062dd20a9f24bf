//! Who of ours came last in the line of each lock.

use std::collections::HashMap;

use super::claim::Claim;
use crate::base::numbers::Numbered;
use crate::types::key::LockKey;
use crate::types::terms::LeaseId;

/// The acquisition of ours that came last in each line.
#[derive(Default)]
pub(super) struct Tails(HashMap<LockKey, LeaseId>);

impl Tails {
    /// Another one comes; gives out the one before it.
    pub(super) fn add(
        &mut self,
        key: &LockKey,
        id: LeaseId,
        table: &Numbered<LeaseId, Claim>,
    ) -> Option<LeaseId> {
        if self.0.len() > 2 * table.len() + 16 {
            self.0.retain(|_, id| table.contains_key(id));
        }
        let before = self.0.insert(key.clone(), id)?;
        (before != id && table.contains_key(&before)).then_some(before)
    }
}
