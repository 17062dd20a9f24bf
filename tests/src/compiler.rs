//! The compiler whose messages and expansions are written down.

use std::{
    io::{self, Write as _},
    process::Command,
};

/// They change from one compiler to the next.
const PINNED: &str = "1.95.";

/// Whether this compiler prints what was written down; where not, a notice says that `what` is not compared.
pub fn is_pinned(what: &str) -> bool {
    let version = version();
    let pinned = version.starts_with(PINNED);
    if !pinned {
        // Not through `println!`, which is shown of failed tests alone.
        let notice = format!("NOTICE: {what} not compared: they are those of rustc {PINNED}x");
        // Nobody may be there to read it.
        let _ = writeln!(io::stderr(), "{notice}, and this is {version}");
    }
    pinned
}

fn version() -> String {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let printed = Command::new(rustc).arg("-vV").output();
    let printed = printed.expect("there is a compiler").stdout;
    let printed = String::from_utf8(printed).expect("a version is text");
    let release = printed
        .lines()
        .find_map(|line| line.strip_prefix("release: "));
    release.expect("`rustc -vV` names its release").to_owned()
}
