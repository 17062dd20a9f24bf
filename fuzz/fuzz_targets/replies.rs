//! Values of Redis servers, sentinels and nodes of a cluster, as queries and searches read them: none panics.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lock_fuzz::bounded;
use lock_runtime::fuzzing::replies;

fuzz_target!(|data: &[u8]| bounded(data, replies));
