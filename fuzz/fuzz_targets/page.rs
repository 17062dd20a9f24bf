//! Requests to the page of `lockctl`: fields of the head, and behind them the name of a lock. None panics.
#![no_main]
#![allow(dead_code, reason = "lockctl uses more of the modules")]

#[path = "../../lockctl/src/key.rs"]
mod key;
#[path = "../../lockctl/src/serve/origin.rs"]
mod origin;
#[path = "../../lockctl/src/words.rs"]
mod words;

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use libfuzzer_sys::fuzz_target;
use lock_runtime::LockKey;

fuzz_target!(|text: &str| {
    let mut lines = text.split('\n');
    let mut head = HeaderMap::new();
    for name in ["host", "origin", "sec-fetch-site"] {
        let value = lines.next().filter(|it| !it.is_empty());
        if let Some(value) = value.and_then(|it| HeaderValue::from_str(it).ok()) {
            head.insert(HeaderName::from_static(name), value);
        }
    }
    let _ = origin::is_ours(&head);
    let name = lines.next().unwrap_or_default();
    if let Ok(key) = key::key(name) {
        let again = LockKey::from_escaped(key.as_str());
        assert!(again.is_ok_and(|it| it == key), "{name}");
    }
    assert!(!words::tame(text).chars().any(words::is_wild));
});
