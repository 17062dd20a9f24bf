//! Messages of members of etcd: none panics, and no length is believed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lock_fuzz::bounded;
use lock_runtime::fuzzing::messages;

fuzz_target!(|data: &[u8]| bounded(data, messages));
