//! Promise: a mistake is told at compile time, where it was made, in a sentence that says what to write.
//!
//! Every file in `ui` is a mistake; what the compiler prints about it stands beside it.
//! `TRYBUILD=overwrite` writes that anew. Two of them read otherwise where the component `rust-src` is installed:
//! the compiler quotes the standard library there.

use std::{
    io::{self, Write as _},
    process::Command,
};

/// Messages change from one compiler to the next: they are compared on this one.
const PINNED: &str = "1.95.";

#[test]
fn mistakes() {
    let version = compiler();
    if version.starts_with(PINNED) {
        trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
    } else {
        // Not through `println!`, which is shown of failed tests alone.
        let notice = "NOTICE: messages not compared: they are those of rustc";
        writeln!(io::stderr(), "{notice} {PINNED}x, and this is {version}").unwrap();
    }
}

/// The version of the compiler that the mistakes would be shown to.
fn compiler() -> String {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let printed = Command::new(rustc).arg("-vV").output();
    let printed = printed.expect("there is a compiler").stdout;
    let printed = String::from_utf8(printed).expect("a version is text");
    let release = printed
        .lines()
        .find_map(|line| line.strip_prefix("release: "));
    release.expect("`rustc -vV` names its release").to_owned()
}
