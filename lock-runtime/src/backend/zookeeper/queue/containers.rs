//! Which locks had their container node a short time ago, so that a node can most likely be
//! created in it.

use std::collections::HashMap;
use std::time::Duration;

use crate::base::clock::Moment;
use crate::types::key::LockKey;

/// The servers look for empty containers once a minute, and delete them then.
const LASTING: Duration = Duration::from_secs(1);

/// When a node was last created or deleted in each container.
#[derive(Default)]
pub(super) struct Containers {
    used: HashMap<LockKey, Moment>,
    /// The number of locks from which on old ones are forgotten.
    room: usize,
}

impl Containers {
    /// A node was created in the container of a lock, or deleted.
    pub(super) fn used(&mut self, now: Moment, key: &LockKey) {
        if let Some(used) = self.used.get_mut(key) {
            *used = now;
            return;
        }
        if self.used.len() >= self.room {
            self.used.retain(|_, used| lasts(now, *used));
            self.room = 2 * self.used.len() + 16;
        }
        self.used.insert(key.clone(), now);
    }

    /// No node could be created in it.
    pub(super) fn forget(&mut self, key: &LockKey) {
        self.used.remove(key);
    }

    /// Whether it is there, as far as is known.
    pub(super) fn is_there(&self, now: Moment, key: &LockKey) -> bool {
        self.used.get(key).is_some_and(|used| lasts(now, *used))
    }
}

fn lasts(now: Moment, used: Moment) -> bool {
    now.since(used) < LASTING
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_is_known_for_a_second_after_its_last_use() {
        let mut containers = Containers::default();
        let (start, key) = (Moment::from_nanos(1), LockKey::of("k"));
        assert!(!containers.is_there(start, &key));
        for half in 0..4 {
            containers.used(start.after(LASTING / 2 * half), &key);
        }
        let last = start.after(LASTING / 2 * 3);
        assert!(containers.is_there(last.after(LASTING / 2), &key));
        assert!(!containers.is_there(last.after(LASTING), &key));
        containers.used(last, &key);
        containers.forget(&key);
        assert!(!containers.is_there(last, &key));
    }

    #[test]
    fn containers_that_are_used_no_more_are_forgotten() {
        let mut containers = Containers::default();
        let mut now = Moment::from_nanos(1);
        for number in 0..10_000 {
            now = now.after(LASTING / 100);
            containers.used(now, &LockKey::of(&number.to_string()));
        }
        assert!(containers.used.len() < 500, "{}", containers.used.len());
    }
}
