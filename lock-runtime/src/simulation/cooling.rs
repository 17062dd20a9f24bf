//! Locks that cool down after an early release: nobody enters until they have.

use std::collections::BTreeMap;

use super::seeds::{seeds, worlds};
use super::{Store, World};
use crate::base::clock::Moment;
use crate::held::guard::LockGuard;
use crate::types::key::LockKey;
use crate::types::kind::Kind;

/// Until when locks cool down, where no server forgets what it knows.
#[derive(Default)]
pub(super) struct Cooldowns {
    until: BTreeMap<LockKey, Moment>,
    /// How many cooled down.
    pub(super) count: u64,
    fault: Option<String>,
}

impl Cooldowns {
    pub(super) fn of(store: Store) -> Option<Self> {
        let forgets = matches!(store, Store::Failing(_));
        (!forgets).then(Self::default)
    }
}

/// Until when the lock of this guard cools down if it is released now. If the server hears of that too late, it only has
/// the lease.
pub(super) fn cooldown(guard: &LockGuard, kind: Kind) -> Option<(LockKey, Moment)> {
    let lease = guard.lease();
    let min_hold = lease.terms.min_hold.filter(|_| kind == Kind::Exclusive)?;
    let until = lease.granted.after(min_hold).min(lease.deadline());
    guard.is_held().then(|| (guard.key().clone(), until))
}

impl World {
    /// A client has released locks that cool down.
    pub(super) fn note_cooldowns(&mut self, released: Vec<(LockKey, Moment)>) {
        let Some(cooldowns) = &mut self.cooldowns else {
            return;
        };
        for (key, until) in released {
            cooldowns.count += u64::from(until > self.now);
            cooldowns.until.insert(key, until);
        }
    }

    /// A client has got a lock.
    pub(super) fn note_entry(&mut self, client: usize, key: &LockKey) {
        // A clock that jumps forward may end cooldowns early.
        let hasty = self.servers.iter().any(|it| self.now < it.hasty_until);
        if hasty || self.is_disputed(key) {
            return;
        }
        let Some(cooldowns) = &mut self.cooldowns else {
            return;
        };
        if cooldowns.until.get(key).is_some_and(|it| self.now < *it) {
            cooldowns.fault = Some(format!("client {client} gets {key}, which cools down"));
        }
    }

    pub(super) fn check_cooldowns(&mut self) -> Result<(), String> {
        let fault = self.cooldowns.as_mut().and_then(|it| it.fault.take());
        fault.map_or(Ok(()), Err)
    }
}

#[test]
fn nobody_enters_a_lock_that_cools_down() {
    for store in [Store::One, Store::Knowing, Store::Sharded, Store::Majority] {
        let seeds = seeds("0..250").step_by(25);
        let cooldowns = worlds(seeds, store, |_, _| {}).filter_map(|it| it.cooldowns);
        let count: u64 = cooldowns.map(|it| it.count).sum();
        println!("{store:?}: {count} locks cooled down");
        assert!(count > 0);
    }
}
