//! Counts the chains of each key, and of each mark, so that a lookup costs the same however many chains there are.

use std::collections::HashMap;

use crate::types::key::LockKey;

/// The keys of chains; a key may have several.
#[derive(Debug)]
pub(super) struct Keys {
    chains: HashMap<LockKey, usize>,
    /// How many chains have a key with each mark.
    marked: [usize; 64],
    marks: u64,
}

impl Default for Keys {
    fn default() -> Self {
        Self {
            chains: HashMap::new(),
            marked: [0; 64],
            marks: 0,
        }
    }
}

impl Keys {
    pub(super) fn has(&self, key: &LockKey) -> bool {
        self.chains.contains_key(key)
    }

    /// The marks of all keys.
    pub(super) fn marks(&self) -> u64 {
        self.marks
    }

    pub(super) fn add(&mut self, key: LockKey) {
        let mark = key.mark();
        self.marks |= mark;
        self.marked[index_of(mark)] += 1;
        *self.chains.entry(key).or_default() += 1;
    }

    /// One of its chains has ended.
    pub(super) fn remove(&mut self, key: &LockKey) {
        let mark = key.mark();
        let marked = &mut self.marked[index_of(mark)];
        *marked -= 1;
        if *marked == 0 {
            self.marks &= !mark;
        }
        if let Some(chains) = self.chains.get_mut(key) {
            *chains -= 1;
            if *chains == 0 {
                self.chains.remove(key);
            }
        }
    }
}

fn index_of(mark: u64) -> usize {
    mark.trailing_zeros() as usize
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;
    use std::time::{Duration, Instant};

    use super::*;

    fn key(number: u32) -> LockKey {
        LockKey::of(&format!("key {number}"))
    }

    fn with(count: u32) -> Keys {
        let mut keys = Keys::default();
        (0..count).for_each(|number| keys.add(key(number)));
        keys
    }

    #[test]
    fn a_key_is_known_until_its_last_chain_has_ended() {
        let mut keys = with(200);
        keys.add(key(7));
        for number in (0..200).rev() {
            let marks = (0..=number).chain([7]).map(|it| key(it).mark());
            assert_eq!(keys.marks(), marks.fold(0, |all, mark| all | mark));
            keys.remove(&key(number));
            assert_eq!(keys.has(&key(number)), number == 7);
        }
        assert_eq!(keys.marks(), key(7).mark());
        keys.remove(&key(7));
        assert!(!keys.has(&key(7)));
        assert_eq!(keys.marks(), 0);
    }

    /// The shortest of some times in which keys are looked up that have no chain.
    fn lookups(keys: &Keys) -> Duration {
        let others: Vec<_> = (0..300).map(|number| key(1_000_000 + number)).collect();
        let time = |_| {
            let started = Instant::now();
            for other in &others {
                black_box(keys.has(other) || keys.marks() == 0);
            }
            started.elapsed()
        };
        (0..5).map(time).min().unwrap_or_default()
    }

    #[test]
    fn a_lookup_costs_the_same_among_thousands_of_hot_keys() {
        let (few, many) = (lookups(&with(10)), lookups(&with(20_000)));
        println!("300 lookups: {few:?} among 10 keys, {many:?} among 20000");
        assert!(many < 50 * few, "{many:?} instead of {few:?}");
    }
}
