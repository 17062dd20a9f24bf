//! The programs of PostgreSQL on this machine, and the user that runs them: they refuse to run as root.

use std::{
    env,
    ffi::OsString,
    fs,
    io::{self, Write as _},
    os::unix::fs::{PermissionsExt as _, chown},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::LazyLock,
};

/// The user and the group of servers that root starts: nobody, whom each machine knows.
const NOBODY: u32 = 65534;

/// The programs that a server needs.
const NEEDED: [&str; 4] = ["postgres", "initdb", "pg_basebackup", "pg_ctl"];

/// The folder of `make setup`'s unpacked packages.
const FETCHED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/postgres");

/// The programs of one version, and what has to be written in front of them.
#[derive(Debug)]
pub(super) struct Programs {
    folder: PathBuf,
    prefix: Vec<OsString>,
}

static PROGRAMS: LazyLock<Option<Programs>> = LazyLock::new(|| folders().find_map(Programs::of));

static PGBOUNCER: LazyLock<Option<Vec<OsString>>> = LazyLock::new(|| {
    let fetched = Path::new(FETCHED).join("usr/sbin");
    let known = [fetched, "/usr/sbin".into()].into_iter();
    known
        .chain(on_path())
        .find_map(|folder| runnable(&folder.join("pgbouncer"), "KILL"))
});

/// The programs of the machine; without them, a notice says that `test` is skipped.
pub(super) fn find(test: &str) -> Option<&'static Programs> {
    if PROGRAMS.is_none() {
        notice(
            test,
            "no binaries that its user may run; `make setup` fetches them",
        );
    }
    PROGRAMS.as_ref()
}

/// The words that start PgBouncer; without it, a notice says that `test` is skipped.
pub(super) fn pgbouncer(test: &str) -> Option<Vec<OsString>> {
    if PGBOUNCER.is_none() {
        notice(test, "no PgBouncer; `make setup` fetches it");
    }
    PGBOUNCER.clone()
}

pub(super) fn notice(test: &str, reason: &str) {
    let notice = format!("NOTICE: {test} not run on PostgreSQL: {reason}\n");
    // Not by a macro: the output of a test that passes is not shown.
    let _ = io::stderr().write_all(notice.as_bytes());
}

impl Programs {
    fn of(folder: PathBuf) -> Option<Self> {
        if !NEEDED.iter().all(|program| folder.join(program).exists()) {
            return None;
        }
        let mut prefix = runnable(&folder.join("postgres"), "QUIT")?;
        prefix.pop();
        Some(Self { folder, prefix })
    }

    /// The words that run one of the programs as the user of the servers.
    pub(super) fn words(&self, program: &str) -> Vec<OsString> {
        let mut words = self.prefix.clone();
        words.push(self.folder.join(program).into());
        words
    }

    /// Runs one of the programs to its end.
    pub(super) async fn run<A: Into<OsString>>(
        &self,
        program: &str,
        args: impl IntoIterator<Item = A>,
    ) {
        let mut words = self.words(program);
        words.extend(args.into_iter().map(Into::into));
        run(words).await;
    }

    /// The name of a data directory that this version and user can start from.
    pub(super) fn name(&self) -> String {
        let version = self.folder.parent().and_then(Path::file_name);
        let version = version.unwrap_or_default().display();
        let user = rustix::process::geteuid().as_raw();
        format!("{version}-{user}")
    }
}

/// Runs a command to its end; panics with what it wrote if it fails.
pub(super) async fn run(words: Vec<OsString>) {
    let output = tokio::process::Command::new(&words[0])
        .args(&words[1..])
        .stdin(Stdio::null())
        .output()
        .await;
    let output = output.unwrap_or_else(|error| panic!("{words:?}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {said}");
}

/// Gives a file or a folder to the user of the servers, for that user alone.
pub(super) fn give(path: &Path) {
    let mode = if path.is_dir() { 0o700 } else { 0o600 };
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a file of ours");
    if is_root() {
        chown(path, Some(NOBODY), Some(NOBODY)).expect("root may give files away");
    }
}

/// What `POSTGRES_BIN` names; what `make setup` fetched; what the machine has, its newest version first.
fn folders() -> impl Iterator<Item = PathBuf> {
    let named = env::var_os("POSTGRES_BIN").map(PathBuf::from);
    let fetched = versions(&Path::new(FETCHED).join("usr/lib/postgresql"));
    let installed = versions(Path::new("/usr/lib/postgresql"));
    let all = named.into_iter().chain(fetched).chain(installed);
    all.chain(on_path())
}

/// The folders `VERSION/bin`, the newest version first.
fn versions(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut versions: Vec<(u32, PathBuf)> = entries
        .filter_map(|entry| {
            let version = entry.file_name().to_str()?.parse().ok()?;
            Some((version, entry.path().join("bin")))
        })
        .collect();
    versions.sort();
    versions
        .into_iter()
        .rev()
        .map(|(_, folder)| folder)
        .collect()
}

fn on_path() -> impl Iterator<Item = PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders: Vec<_> = env::split_paths(&path).collect();
    folders.into_iter()
}

/// The words that run a program as the user of the servers, if it runs here.
fn runnable(program: &Path, end: &str) -> Option<Vec<OsString>> {
    if !program.exists() {
        return None;
    }
    let libraries = libraries();
    users(end).into_iter().find_map(|mut words| {
        words.extend(libraries.iter().cloned());
        words.push(program.into());
        let status = Command::new(&words[0])
            .args(&words[1..])
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        status.is_ok_and(|it| it.success()).then_some(words)
    })
}

/// The words by which a program becomes one of the servers' user, if it is not ours, and gets this signal when we end.
/// PostgreSQL shuts down at once by QUIT, and leaves no shared memory; PgBouncer ignores it.
fn users(end: &str) -> Vec<Vec<OsString>> {
    let setpriv = |user: &str| {
        let words = format!("setpriv {user} --pdeathsig {end} --");
        words.split_whitespace().map(OsString::from).collect()
    };
    if is_root() {
        let nobody = format!("--reuid={NOBODY} --regid={NOBODY} --clear-groups");
        vec![setpriv(&nobody)]
    } else {
        vec![setpriv(""), Vec::new()]
    }
}

/// The words that let a program find the libraries that were fetched with it. They are needed also if there are none:
/// it is `env` that finds out whether the user may run the program.
fn libraries() -> Vec<OsString> {
    let folders = fs::read_dir(Path::new(FETCHED).join("usr/lib"));
    let folders = folders.into_iter().flatten().flatten();
    let folders = folders.map(|entry| entry.path()).filter(|it| it.is_dir());
    let path = env::join_paths(folders).unwrap_or_default();
    if path.is_empty() {
        return vec!["env".into()];
    }
    let mut word = OsString::from("LD_LIBRARY_PATH=");
    word.push(path);
    vec!["env".into(), word]
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
