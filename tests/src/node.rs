//! Processes of a client in Node, where there are Node and the packages that it needs.

use std::{
    ffi::{OsStr, OsString},
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::LazyLock,
};

use crate::Worker;

/// Where `make setup` puts the packages, if it has.
static PACKAGES: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
    let packages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/node");
    let usable = Command::new("node")
        .arg(program("plain.js"))
        .arg(&packages)
        .arg("version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    usable.then_some(packages)
});

fn program(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("node")
        .join(name)
}

/// The command that runs a program in `tests/node`.
pub(crate) fn command(name: &str) -> [String; 3] {
    let packages = PACKAGES.as_ref().expect("there is Node with `redlock`");
    let [program, packages] =
        [&program(name), packages].map(|it| it.to_string_lossy().into_owned());
    ["node".to_owned(), program, packages]
}

impl Worker {
    /// Whether [`Worker::node`] works here; if not, a notice says that `test` is skipped.
    pub fn has_node(test: &str) -> bool {
        if PACKAGES.is_none() {
            let notice = format!(
                "NOTICE: {test} not run: no Node with its package `redlock`; `make setup` installs it\n"
            );
            // Not by a macro: the output of a test that passes is not shown.
            let _ = io::stderr().write_all(notice.as_bytes());
        }
        PACKAGES.is_some()
    }

    /// Starts `tests/node/plain.js`.
    pub async fn node<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> Self {
        let [node, words @ ..] = command("plain.js");
        let mut all = words.map(OsString::from).to_vec();
        all.extend(args.into_iter().map(|it| it.as_ref().to_owned()));
        Self::spawn(&node, all).await
    }
}
