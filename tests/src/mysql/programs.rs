//! The server's program on this machine.

use std::{
    env,
    ffi::OsString,
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::LazyLock,
};

/// The folder of `make setup`'s unpacked packages.
const FETCHED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/mysql");

/// The program, and the folder of what it reads.
#[derive(Debug)]
pub(super) struct Program {
    server: PathBuf,
    prefix: PathBuf,
}

static PROGRAM: LazyLock<Option<Program>> = LazyLock::new(|| {
    let named = env::var_os("MYSQL_PREFIX").map(PathBuf::from);
    let known = [FETCHED.into(), "/".into()];
    named.into_iter().chain(known).find_map(Program::of)
});

/// The program of the machine; without it, a notice says that `test` is skipped.
pub(super) fn find(test: &str) -> Option<&'static Program> {
    if PROGRAM.is_none() {
        let notice = format!(
            "NOTICE: {test} not run on MySQL: no MariaDB server; `make setup` fetches it\n"
        );
        // Not by a macro: the output of a test that passes is not shown.
        let _ = io::stderr().write_all(notice.as_bytes());
    }
    PROGRAM.as_ref()
}

impl Program {
    fn of(prefix: PathBuf) -> Option<Self> {
        let server = prefix.join("usr/sbin/mariadbd");
        server.exists().then_some(Self { server, prefix })
    }

    /// The words that start it with data in this folder.
    pub(super) fn words(&self, data: &Path) -> Vec<OsString> {
        let share = self.share();
        let mut words = vec![self.server.clone().into(), "--no-defaults".into()];
        if rustix::process::geteuid().is_root() {
            words.push("--user=root".into());
        }
        for (name, path) in [
            ("datadir", data.to_owned()),
            ("lc-messages-dir", share.clone()),
            ("character-sets-dir", share.join("charsets")),
            ("plugin-dir", self.prefix.join("usr/lib/mysql/plugin")),
        ] {
            let mut word = OsString::from(format!("--{name}="));
            word.push(path);
            words.push(word);
        }
        words
    }

    /// The folder with its scripts.
    pub(super) fn share(&self) -> PathBuf {
        self.prefix.join("usr/share/mysql")
    }
}
