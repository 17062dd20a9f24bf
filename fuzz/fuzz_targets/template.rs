//! Key templates: no text panics, and what is printed is read as the same.
#![no_main]
#![allow(dead_code, reason = "the attribute uses more of the module")]

#[path = "../../lock-macros/src/parse/template.rs"]
mod template;

use libfuzzer_sys::fuzz_target;
use template::Template;

fuzz_target!(|text: &str| {
    match text.parse::<Template>() {
        Ok(template) => assert_eq!(template.to_string().parse(), Ok(template)),
        Err(wrong) => drop(wrong.to_string()),
    }
});
