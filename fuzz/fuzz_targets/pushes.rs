//! Messages that Redis servers push: none panics, and what is printed is read as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lock_fuzz::bounded;
use lock_runtime::fuzzing::pushes;

fuzz_target!(|data: &[u8]| bounded(data, pushes));
