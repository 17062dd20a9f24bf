//! A process of the test's own programs, which takes part in a test and may be paused and killed.

use std::{ffi::OsStr, process::ExitStatus};

use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{ChildStdin, ChildStdout},
};

use crate::{TIME_LIMIT, process::Process, within};

/// A child process that speaks in lines; dropping it kills it.
#[derive(Debug)]
pub struct Worker {
    process: Process,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Worker {
    /// Starts the `worker` program, `env!("CARGO_BIN_EXE_worker")` in a test.
    pub async fn spawn<A: AsRef<OsStr>>(program: &str, args: impl IntoIterator<Item = A>) -> Self {
        let (process, stdin, stdout) = Process::spawn(program.as_ref(), args)
            .await
            .unwrap_or_else(|error| panic!("{program}: {error}"));
        Self {
            process,
            stdin,
            lines: BufReader::new(stdout).lines(),
        }
    }

    /// Starts one that takes and releases locks as the test says.
    pub async fn locker(program: &str, url: &str) -> Self {
        let mut worker = Self::spawn(program, ["locker", url]).await;
        assert_eq!(worker.line().await, "connected");
        worker
    }

    /// Starts one that stands for election again and again, and publishes its name and the number of its campaign when it
    /// leads.
    pub async fn candidate(
        program: &str,
        url: &str,
        [election, name]: [&str; 2],
        ttl: u64,
    ) -> Self {
        let args = ["candidate", url, election, name, &ttl.to_string()];
        let mut worker = Self::spawn(program, args).await;
        assert_eq!(worker.line().await, "connected");
        worker
    }

    /// The fence of the grant that a locker or a candidate tells of next.
    pub async fn fence(&mut self) -> u64 {
        let line = self.line().await;
        let fence = line.split_once(" granted ");
        let (_, fence) = fence.unwrap_or_else(|| panic!("no grant: {line}"));
        fence.parse().expect("a number")
    }

    /// Has a `paused-process` take its lock; the fence of the grant.
    pub async fn take(&mut self) -> u64 {
        self.send("lock").await;
        let line = self.line().await;
        let fence = line.strip_prefix("held ");
        let fence = fence.unwrap_or_else(|| panic!("not held: {line}"));
        fence.parse().expect("a number")
    }

    /// When a `paused-process` has polled its body, as nanoseconds of [`boottime`](crate::boottime), until it lost the
    /// lock with this fence.
    pub async fn polls_until_lost(&mut self, fence: u64) -> Vec<u128> {
        let mut polls = Vec::new();
        loop {
            let line = self.line().await;
            let Some(poll) = line.strip_prefix("poll ") else {
                assert_eq!(line, format!("lost {fence}"));
                return polls;
            };
            polls.push(poll.parse().expect("nanoseconds"));
        }
    }

    /// The next line that the worker says; panics after 20 s, or when the worker has ended.
    pub async fn line(&mut self) -> String {
        within(TIME_LIMIT, self.lines.next_line())
            .await
            .expect("the worker speaks UTF-8")
            .expect("the worker has ended; its last words are above")
    }

    /// Says a line to the worker.
    pub async fn send(&mut self, line: &str) {
        let line = format!("{line}\n");
        self.stdin
            .write_all(line.as_bytes())
            .await
            .unwrap_or_else(|error| panic!("the worker does not listen: {error}"));
    }

    /// The worker's process id.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Pauses the worker, all threads of it (`SIGSTOP`).
    pub fn pause(&self) {
        self.process.stop();
    }

    /// Lets a paused worker go on.
    pub fn resume(&self) {
        self.process.resume();
    }

    /// Ends the worker at once, as a crash would (`SIGKILL`).
    pub async fn kill(&mut self) {
        self.process.kill().await;
    }

    /// Waits until the worker ends by itself; panics after 20 s.
    pub async fn wait(&mut self) -> ExitStatus {
        within(TIME_LIMIT, self.process.wait()).await
    }
}
