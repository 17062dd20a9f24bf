//! Hash tables for numbers that this crate chooses itself. Nobody else can provoke
//! collisions, so a cheap hash is enough.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A table whose keys are made of one number.
pub(crate) type Numbered<K, V> = HashMap<K, V, BuildHasherDefault<Spread>>;

/// Spreads a number over all bits.
#[derive(Debug, Default)]
pub(crate) struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            self.write_u64(u64::from_ne_bytes(word));
        }
    }

    fn write_u64(&mut self, number: u64) {
        // Odd, and without a pattern: 2^64 divided by the golden ratio.
        let mixed = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }
}
