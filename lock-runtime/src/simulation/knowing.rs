//! What a server knows of the fences of its locks, where transactions may ask it for them.

use std::collections::BTreeMap;

use crate::types::key::LockKey;

use super::Store;
use super::seeds::simulate_all;

/// How often of 256 times a transaction is open that has asserted an earlier fence of a chain.
const ASSERTED: u8 = 24;

/// The fence of the latest holder of each lock, and those set aside behind it.
#[derive(Clone, Debug, Default)]
pub(super) struct Known(BTreeMap<LockKey, Fences>);

#[derive(Clone, Copy, Debug, Default)]
struct Fences {
    latest: u64,
    last: u64,
}

impl Known {
    /// A lock is granted under this fence, with so many set aside behind it.
    pub(super) fn granted(&mut self, key: &LockKey, fence: u64, followers: usize) {
        let last = fence + followers as u64;
        let latest = fence;
        self.0.insert(key.clone(), Fences { latest, last });
    }

    /// Whether a follower has the lock under this fence from now on.
    pub(super) fn pass(&mut self, key: &LockKey, fence: u64) -> bool {
        let Some(fences) = self.0.get_mut(key) else {
            return false;
        };
        if !(fences.latest..=fences.last).contains(&fence) {
            return false;
        }
        if fence > fences.latest && fastrand::u8(..) < ASSERTED {
            return false;
        }
        fences.latest = fence;
        true
    }

    /// Whether the latest holder came with this fence or after it.
    pub(super) fn has(&self, key: &LockKey, fence: u64) -> bool {
        self.fence(key) >= fence
    }

    pub(super) fn fence(&self, key: &LockKey) -> u64 {
        self.0.get(key).copied().unwrap_or_default().latest
    }
}

#[test]
fn nobody_enters_a_chain_before_the_server_knows() {
    simulate_all("0..120", Store::Knowing);
}
