//! Reads a value as each query does, for `fuzz/`.

use redis::Value;

use super::{history, overview, scan, status};
use crate::types::key::LockKey;

pub(in crate::backend::redis) fn read_all(value: &Value) {
    let key = LockKey::of("k");
    drop(status::read(key.clone(), value));
    drop(history::read(value));
    let _ = scan::read_page(value);
    drop(overview::facts_about(&[key], value));
}
