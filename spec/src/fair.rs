//! Fair runs: from a state on nothing more goes wrong, and whatever can happen does.

use std::collections::HashSet;
use std::fmt::Debug;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

use stateright::Model;

/// More steps than a fair run takes.
const STEPS: usize = 2000;

/// How many parts the memo has, so that threads seldom meet.
const PARTS: u64 = 64;

/// What a fair scheduler lets happen next.
pub(crate) trait Fair: Model {
    /// Nothing once all is over.
    fn next(&self, state: &Self::State) -> Option<Self::Action>;

    /// Where it is noted which runs end.
    fn memo(&self) -> &Memo;
}

/// Whether the fair run from this state on ends.
pub(crate) fn ends<M: Fair>(model: &M, state: &M::State) -> bool
where
    M::State: Clone + Hash + Debug,
{
    let mut seen = Vec::new();
    let mut state = state.clone();
    for _ in 0..STEPS {
        let mark = BuildHasherDefault::<DefaultHasher>::default().hash_one(&state);
        if model.memo().knows(mark) {
            model.memo().learn(&seen);
            return true;
        }
        seen.push(mark);
        let Some(action) = model.next(&state) else {
            model.memo().learn(&seen);
            return true;
        };
        match model.next_state(&state, action) {
            Some(next) => state = next,
            None => return false,
        }
    }
    false
}

/// States from which the fair run is known to end, by their hashes.
#[derive(Debug)]
pub struct Memo(Vec<Mutex<Known>>);

type Known = HashSet<u64, BuildHasherDefault<Unhashed>>;

impl Default for Memo {
    fn default() -> Self {
        Self((0..PARTS).map(|_| Mutex::default()).collect())
    }
}

impl Memo {
    fn part(&self, mark: u64) -> MutexGuard<'_, Known> {
        let part = &self.0[usize::try_from(mark % PARTS).unwrap_or(0)];
        part.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn knows(&self, mark: u64) -> bool {
        self.part(mark).contains(&mark)
    }

    fn learn(&self, marks: &[u64]) {
        for mark in marks {
            self.part(*mark).insert(*mark);
        }
    }
}

/// Hashes a hash to itself.
#[derive(Clone, Copy, Debug, Default)]
struct Unhashed(u64);

impl Hasher for Unhashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {}

    fn write_u64(&mut self, number: u64) {
        // The table takes its place from the low digits, which all marks of one part share.
        self.0 = number.rotate_left(32);
    }
}
