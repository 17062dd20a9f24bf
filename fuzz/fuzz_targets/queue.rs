//! A queue on Redis: no answer and no message, in whichever order, panics or makes calls without end.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lock_fuzz::bounded;
use lock_runtime::fuzzing::queue;

fuzz_target!(|data: &[u8]| bounded(data, queue));
