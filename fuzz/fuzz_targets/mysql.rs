//! Packets of MySQL servers: none panics, and no length is believed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lock_fuzz::bounded;
use lock_runtime::fuzzing::mysql_answers;

fuzz_target!(|data: &[u8]| bounded(data, mysql_answers));
