//! HTTP/2 connections to members of etcd: none panics.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lock_fuzz::bounded;
use lock_runtime::fuzzing::http2;

fuzz_target!(|data: &[u8]| bounded(data, http2));
