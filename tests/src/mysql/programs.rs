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
    /// Whether it is MySQL, and not MariaDB.
    pub(super) is_mysql: bool,
}

static PROGRAM: LazyLock<Option<Program>> = LazyLock::new(|| {
    let named = env::var_os("MYSQL_PREFIX").map(PathBuf::from);
    let known = [FETCHED.into(), "/".into()];
    named
        .into_iter()
        .chain(known)
        .find_map(|it| Program::of(&it))
});

/// The program of the machine; without it, a notice says that `test` is skipped.
pub(super) fn find(test: &str) -> Option<&'static Program> {
    if PROGRAM.is_none() {
        let notice =
            format!("NOTICE: {test} not run on MySQL: no server; `make setup` fetches MariaDB\n");
        // Not by a macro: the output of a test that passes is not shown.
        let _ = io::stderr().write_all(notice.as_bytes());
    }
    PROGRAM.as_ref()
}

impl Program {
    fn of(prefix: &Path) -> Option<Self> {
        ["mariadbd", "mysqld"].iter().find_map(|name| {
            let server = prefix.join("usr/sbin").join(name);
            let is_mysql = *name == "mysqld";
            server.exists().then(|| Self {
                server,
                prefix: prefix.to_owned(),
                is_mysql,
            })
        })
    }

    /// The words that start the program: by the loader that was unpacked with it, if there is one.
    fn call(&self) -> Vec<OsString> {
        let libraries = self.prefix.join("usr/lib/x86_64-linux-gnu");
        let loader = libraries.join("ld-linux-x86-64.so.2");
        if !self.is_mysql || self.prefix == Path::new("/") || !loader.exists() {
            return vec![self.server.clone().into()];
        }
        vec![
            loader.into(),
            "--library-path".into(),
            libraries.into(),
            self.server.clone().into(),
        ]
    }

    /// The words that start it with data in this folder, and temporary tables in that one.
    pub(super) fn words(&self, data: &Path, scratch: &Path) -> Vec<OsString> {
        let share = self.share();
        let mut words = self.call();
        words.push("--no-defaults".into());
        if rustix::process::geteuid().is_root() {
            words.push("--user=root".into());
        }
        for (name, path) in [
            ("datadir", data.to_owned()),
            ("tmpdir", scratch.to_owned()),
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
