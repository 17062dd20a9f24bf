//! Which slots the entries of a manager take in a lock. Every key that there was costs each
//! read of the lock's queue a little until it is compacted, so a free slot is taken again.

use std::collections::{BTreeSet, HashMap};

use crate::types::key::LockKey;

#[derive(Debug, Default)]
pub(super) struct Slots {
    locks: HashMap<LockKey, LockSlots>,
    /// The first that may be taken: those below may still be deleted by late calls.
    first: u64,
    /// No slot of any lock has come up to it.
    end: u64,
}

/// The slots of one lock.
#[derive(Debug)]
struct LockSlots {
    taken: usize,
    /// Below `next`, and free.
    free: BTreeSet<u64>,
    next: u64,
}

impl Slots {
    /// Takes the first that is free.
    pub(super) fn take(&mut self, lock: &LockKey) -> u64 {
        let slots = self.locks.entry(lock.clone()).or_insert(LockSlots {
            taken: 0,
            free: BTreeSet::new(),
            next: self.first,
        });
        slots.taken += 1;
        let slot = slots.free.pop_first().unwrap_or_else(|| {
            slots.next += 1;
            slots.next - 1
        });
        self.end = self.end.max(slots.next);
        slot
    }

    /// Its entry is surely gone, and no call about it is on its way.
    pub(super) fn free(&mut self, lock: &LockKey, slot: u64) {
        let Some(slots) = self.locks.get_mut(lock).filter(|_| slot >= self.first) else {
            return;
        };
        slots.taken -= 1;
        slots.free.insert(slot);
        if slots.taken == 0 {
            self.locks.remove(lock);
        }
    }

    /// Its entry belongs to another: it is not taken again while the lock has other entries.
    pub(super) fn give_up(&mut self, lock: &LockKey, slot: u64) {
        let Some(slots) = self.locks.get_mut(lock).filter(|_| slot >= self.first) else {
            return;
        };
        slots.taken -= 1;
        if slots.taken == 0 {
            self.locks.remove(lock);
        }
    }

    /// Calls of the last connection may be carried out late: no slot that was taken before is taken
    /// again.
    pub(super) fn renew(&mut self) {
        self.locks.clear();
        self.first = self.end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_free_slot_of_a_lock_is_taken() {
        let (a, b) = (LockKey::of("a"), LockKey::of("b"));
        let mut slots = Slots::default();
        let taken = [&a, &a, &b, &a].map(|lock| slots.take(lock));
        assert_eq!(taken, [0, 1, 0, 2]);
        slots.free(&a, 1);
        slots.free(&a, 0);
        assert_eq!([&a, &a, &a].map(|lock| slots.take(lock)), [0, 1, 3]);
        slots.free(&b, 0);
        assert_eq!(slots.locks.len(), 1, "nothing is kept about a free lock");
    }

    #[test]
    fn a_slot_that_was_given_up_is_not_taken_beside_others() {
        let lock = LockKey::of("a");
        let mut slots = Slots::default();
        assert_eq!([&lock, &lock].map(|lock| slots.take(lock)), [0, 1]);
        slots.give_up(&lock, 0);
        assert_eq!(slots.take(&lock), 2);
        slots.free(&lock, 1);
        slots.give_up(&lock, 2);
        assert!(slots.locks.is_empty(), "nothing is kept about it");
    }

    #[test]
    fn no_slot_is_taken_again_after_a_connection_was_lost() {
        let (a, b) = (LockKey::of("a"), LockKey::of("b"));
        let mut slots = Slots::default();
        assert_eq!([&a, &a, &b].map(|lock| slots.take(lock)), [0, 1, 0]);
        slots.renew();
        slots.free(&a, 0);
        assert_eq!([&a, &b].map(|lock| slots.take(lock)), [2, 2]);
        slots.free(&a, 2);
        slots.free(&a, 1);
        assert_eq!(slots.take(&a), 2);
    }
}
