//! Durations: no text panics, and what is printed is read as the same.
#![no_main]

#[path = "../../lock-macros/src/parse/duration.rs"]
mod duration;

use duration::Millis;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match text.parse::<Millis>() {
        Ok(millis) => assert_eq!(millis.to_string().parse(), Ok(millis)),
        Err(wrong) => drop(wrong.to_string()),
    }
});
