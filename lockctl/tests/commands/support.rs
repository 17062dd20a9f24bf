//! Starts `lockctl`, reads what it writes, and looks after the processes that it starts.

use std::{process::Stdio, time::Duration};

use nix::{sys::signal::Signal, unistd::Pid};
use serde_json::Value;
use tests::{RedisServer, TIME_LIMIT, eventually, within};
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStdout, Command},
};

/// The path of the program under test.
pub(crate) const LOCKCTL: &str = env!("CARGO_BIN_EXE_lockctl");

/// What a run of `lockctl` came to.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// The objects on stdout, one from each line.
    pub(crate) fn objects(&self) -> Vec<Value> {
        objects(&self.stdout)
    }

    /// The only object on stdout.
    pub(crate) fn object(&self) -> Value {
        let mut objects = self.objects();
        assert_eq!(objects.len(), 1, "{self:?}");
        objects.remove(0)
    }
}

pub(crate) fn objects(text: &str) -> Vec<Value> {
    let read = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    text.lines().map(read).collect()
}

/// A command line for a server.
pub(crate) fn lockctl(server: &RedisServer, args: &[&str]) -> Command {
    let words = [&hearing(), &[LOCKCTL][..], args].concat();
    let mut command = Command::new(words[0]);
    command
        .args(&words[1..])
        .env("LOCK_URL", server.url())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// What has to stand before a command that is to hear signals: a test that a shell runs in the background, or `nohup`,
/// ignores some, and so does what it starts.
pub(crate) fn hearing() -> Vec<&'static str> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|it| it.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|it| u64::from_str_radix(it.trim(), 16).ok());
    let heard = [Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT];
    let heard = heard.map(|it| 1 << (it as i32 - 1)).iter().sum::<u64>();
    if ignored.unwrap_or(0) & heard == 0 {
        return Vec::new();
    }
    vec!["env", "--default-signal=HUP,INT,QUIT"]
}

/// Runs it to its end.
pub(crate) async fn ran(server: &RedisServer, args: &[&str]) -> Ran {
    let output = within(TIME_LIMIT, lockctl(server, args).output())
        .await
        .unwrap();
    Ran {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A `lockctl run` whose command writes lines.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Running {
    /// Starts it; what it writes to stderr is read at its end.
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let stdout = child.stdout.take().unwrap();
        let lines = BufReader::new(stdout).lines();
        Self { child, lines }
    }

    /// `lockctl run ARGS -- sh -c SCRIPT`.
    pub(crate) fn script(server: &RedisServer, args: &[&str], script: &str) -> Self {
        let args = [&["run"], args, &["--", "sh", "-c", script]].concat();
        Self::start(lockctl(server, &args))
    }

    pub(crate) async fn line(&mut self) -> String {
        let line = within(TIME_LIMIT, self.lines.next_line()).await.unwrap();
        line.expect("a line before the end")
    }

    /// A line that is the number of a process.
    pub(crate) async fn pid(&mut self) -> Pid {
        Pid::from_raw(self.line().await.parse().unwrap())
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let number = self.child.id().expect("it runs").cast_signed();
        nix::sys::signal::kill(Pid::from_raw(number), signal).unwrap();
    }

    /// Its end: the exit code, or the negative number of a signal, and the rest of what it wrote.
    pub(crate) async fn end(mut self) -> Ran {
        use std::os::unix::process::ExitStatusExt as _;
        let status = within(TIME_LIMIT, self.child.wait()).await.unwrap();
        let mut stdout = String::new();
        while let Some(line) = within(TIME_LIMIT, self.lines.next_line()).await.unwrap() {
            stdout = stdout + &line + "\n";
        }
        let mut stderr = String::new();
        let mut pipe = self.child.stderr.take().unwrap();
        let read = tokio::io::AsyncReadExt::read_to_string(&mut pipe, &mut stderr);
        within(TIME_LIMIT, read).await.unwrap();
        Ran {
            code: status
                .code()
                .unwrap_or_else(|| -status.signal().unwrap_or(0)),
            stdout,
            stderr,
        }
    }
}

/// Whether a process runs. One that has ended and was not waited for does not.
pub(crate) fn is_alive(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").map(|(_, rest)| &rest[..1]);
    state.is_some_and(|state| !matches!(state, "Z" | "X"))
}

/// Returns when a process has ended.
pub(crate) async fn ends(pid: Pid, limit: Duration) {
    eventually(limit, async || !is_alive(pid)).await;
}
