//! URLs with their settings: none panics, and no password is shown.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lock_runtime::LockConfig;

const PASSWORD: &str = "geheimnis";

fuzz_target!(|text: &str| {
    // The fuzzer learns the word from comparisons, and writes it where no password belongs.
    if text.contains(PASSWORD) {
        return;
    }
    let text = with_password(text);
    let shown = match LockConfig::new(&*text) {
        Ok(config) => {
            drop(config.validate());
            format!("{config:?}")
        }
        Err(wrong) => format!("{wrong} {wrong:?}"),
    };
    assert!(!shown.contains(PASSWORD), "{text}: {shown}");
});

/// The URL with a password, if it has a place for one.
fn with_password(text: &str) -> String {
    let (scheme, rest) = text.split_once("://").unwrap_or(("", ""));
    let is_scheme = |c: char| c.is_ascii_alphanumeric() || c == '+';
    let authority = if scheme.chars().all(is_scheme) {
        rest
    } else {
        ""
    };
    let authority = authority.split(['/', '?', '#']).next().unwrap_or_default();
    if !authority.contains(":@") {
        return text.to_owned();
    }
    let (before, behind) = text.split_once(":@").unwrap_or((text, ""));
    format!("{before}:{PASSWORD}@{behind}")
}
