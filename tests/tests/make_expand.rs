//! Promise: `make expand` says before it installs something, and installs it into `target/`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use tests::documents::repository::root;

/// A `cargo` that notes its arguments. It has the subcommand `expand` once that was installed.
const CARGO: &str = r#"#!/bin/sh
here=$(dirname "$0")
echo "$*" >> "$here/calls"
case "$1 $2" in
    'expand --version') [ -e "$here/installed" ] ;;
    install*) echo 'cargo installs' >&2; touch "$here/installed" ;;
esac
"#;

const ASKED: &str = "expand --version";

#[test]
fn a_missing_tool_is_announced_and_installed_below_target_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let cargo = folder.path().join("cargo");
    fs::write(&cargo, CARGO).expect("it can be written");
    fs::set_permissions(&cargo, PermissionsExt::from_mode(0o755)).expect("it is ours");

    let (said, first) = make_expand(folder.path());
    let expected = [
        "installing cargo-expand into target/expand",
        "cargo installs",
    ];
    assert_eq!(said.lines().collect::<Vec<_>>(), expected);
    assert_eq!(first[0], ASKED);
    assert!(first[1].starts_with("install "), "{first:?}");
    let target = " --root target/expand cargo-expand";
    assert!(first[1].ends_with(target), "{first:?}");

    let (said, second) = make_expand(folder.path());
    assert_eq!(said, "", "what is there is used");
    assert_eq!(second[0], ASKED);
    for example in ["examples --example quickstart", "recipes --example leader"] {
        let shown = format!("expand --quiet -p {example}");
        assert!(second.contains(&shown), "{second:?}");
    }
    assert_eq!(first[2..], second[1..]);
}

/// Runs `make expand` with the `cargo` in that folder: what it says, and the arguments of each call of `cargo`.
fn make_expand(folder: &Path) -> (String, Vec<String>) {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut make = Command::new("make");
    make.args(["--no-print-directory", "expand"])
        .current_dir(root())
        .env("PATH", format!("{}:{path}", folder.display()))
        // `make test` may run this.
        .env_remove("MAKEFLAGS")
        .env_remove("MAKELEVEL");
    let output = make.output().expect("there is `make`");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");

    let noted = folder.join("calls");
    let calls = fs::read_to_string(&noted).expect("cargo was called");
    fs::remove_file(&noted).expect("it is ours");
    (said, calls.lines().map(str::to_owned).collect())
}
