//! Wall clocks that a test moves, for servers that run on Linux and are linked dynamically.

use std::{
    ffi::OsString,
    fs::{self, File, Permissions},
    io::{self, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
    process::{Command, Stdio},
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use tempfile::TempDir;

use super::RedisServer;
use crate::{TIME_LIMIT, eventually};

/// What the compiler makes of `clock.c`.
const LIBRARY: &str = "clock.so";

/// The clocks of some servers, each of which can be moved by itself.
#[derive(Debug)]
pub(crate) struct Clocks(TempDir);

/// That of one of them.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    all: Arc<Clocks>,
    server: usize,
}

impl Clock {
    pub(crate) fn new(all: &Arc<Clocks>, server: usize) -> Self {
        let all = Arc::clone(all);
        Self { all, server }
    }

    /// What the server has to find in its environment.
    pub(crate) fn environment(&self) -> Vec<OsString> {
        self.all.environment(self.server)
    }

    /// Lets it be ahead of the machine's by so much.
    pub(crate) fn set(&self, ahead: Duration) {
        self.all.set(self.server, ahead);
    }
}

impl RedisServer {
    /// Whether its clock can be moved.
    pub(crate) fn has_clock(&self) -> bool {
        self.clock.is_some()
    }

    /// Its clock jumps: it is ahead of the machine's by so much from now on.
    pub(crate) async fn set_clock(&self, ahead: Duration) {
        let clock = self.clock.as_ref().expect("a clock that can be moved");
        clock.set(ahead);
        let jumped = async || {
            let [seconds, _]: [u64; 2] = self.read(&["TIME"]).await;
            let machine = UNIX_EPOCH.elapsed().expect("it is later than 1970");
            Duration::from_secs(seconds).abs_diff(machine + ahead) < TIME_LIMIT
        };
        eventually(TIME_LIMIT, jumped).await;
    }
}

impl Clocks {
    /// Those of so many servers. `None` where they cannot be had; a notice says then that `test` is skipped.
    pub(crate) fn new(servers: usize, test: &str) -> Option<Self> {
        let this = Self(tempfile::tempdir().expect("a directory"));
        if !this.build() {
            let notice = format!(
                "NOTICE: {test} not run: clocks of servers cannot be moved without Linux and `cc`\n"
            );
            // Not by a macro: the output of a test that passes is not shown.
            let _ = io::stderr().write_all(notice.as_bytes());
            return None;
        }
        // Some servers run as another user.
        let readable = fs::set_permissions(this.0.path(), Permissions::from_mode(0o755));
        readable.expect("a directory of ours");
        for server in 0..servers {
            fs::write(this.file(server), [0; 8]).expect("a file");
        }
        Some(this)
    }

    fn environment(&self, server: usize) -> Vec<OsString> {
        let variable = |name: &str, path: PathBuf| {
            let mut text = OsString::from(name);
            text.push(path);
            text
        };
        vec![
            variable("LD_PRELOAD=", self.0.path().join(LIBRARY)),
            variable("MOVED_CLOCK=", self.file(server)),
        ]
    }

    /// Lets a server's clock be ahead of the machine's by so much.
    fn set(&self, server: usize, ahead: Duration) {
        let micros = i64::try_from(ahead.as_micros()).expect("a jump of some hours");
        // In place: the server has it mapped.
        let file = File::options().write(true).open(self.file(server));
        let mut file = file.expect("the clock's file");
        file.write_all(&micros.to_ne_bytes()).expect("eight bytes");
    }

    fn file(&self, server: usize) -> PathBuf {
        self.0.path().join(server.to_string())
    }

    fn build(&self) -> bool {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src/server/clock.c");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-o"]);
        compiler.arg(self.0.path().join(LIBRARY)).arg(source);
        let outcome = compiler.stderr(Stdio::null()).status();
        cfg!(target_os = "linux") && outcome.is_ok_and(|it| it.success())
    }
}
