//! All processes of one server, which stop, go on and die together.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    thread::sleep,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};

use crate::{TIME_LIMIT, eventually, fixtures::LOOK_EVERY, process::Process};

/// How long a server may take to shut down before it is killed.
const SHUTDOWN: Duration = Duration::from_secs(10);

/// The postmaster, and its children: one for each connection and chore.
#[derive(Debug)]
pub(super) struct Processes {
    postmaster: Process,
    data: PathBuf,
    stopped: Option<Stopped>,
}

impl Processes {
    /// Those of a server with the data in this folder.
    pub(super) fn new(postmaster: Process, data: PathBuf) -> Self {
        Self {
            postmaster,
            data,
            stopped: None,
        }
    }

    pub(super) fn pid(&self) -> u32 {
        self.postmaster.pid()
    }

    /// Stops all of them; returns when they stand still.
    pub(super) fn stop(&mut self) {
        self.postmaster.stop();
        let children = children(self.pid());
        for child in &children {
            signal(*child, Signal::STOP);
        }
        while children
            .iter()
            .any(|it| !matches!(state(*it), None | Some('T' | 'Z')))
        {
            sleep(LOOK_EVERY);
        }
        self.stopped = Some(Stopped::of(self.pid(), &children));
    }

    /// Lets them go on.
    pub(super) fn resume(&mut self) {
        self.stopped = None;
    }

    /// Ends all of them at once, as the end of a machine would.
    pub(super) async fn kill(&mut self) {
        if self.postmaster.has_ended() {
            return;
        }
        // It starts no other children.
        self.postmaster.stop();
        let children = children(self.pid());
        for child in &children {
            signal(*child, Signal::KILL);
        }
        self.postmaster.kill().await;
        self.stopped = None;
        // Until then they have the shared memory, without which no server starts.
        let gone = async || {
            children
                .iter()
                .all(|it| matches!(state(*it), None | Some('Z')))
        };
        eventually(TIME_LIMIT, gone).await;
        remove_shared_memory(&self.data);
    }

    /// Stops the process of one connection, which has to be resumed.
    pub(super) fn stop_child(&self, pid: u32) {
        let child = self.child(pid);
        signal(child, Signal::STOP);
        while !matches!(state(child), None | Some('T' | 'Z')) {
            sleep(LOOK_EVERY);
        }
    }

    /// Resumes the process of one connection.
    pub(super) fn resume_child(&self, pid: u32) {
        signal(self.child(pid), Signal::CONT);
    }

    fn child(&self, pid: u32) -> Pid {
        let mut children = children(self.pid()).into_iter();
        let child = children.find(|it| it.as_raw_pid().cast_unsigned() == pid);
        child.expect("a process of this server")
    }

    /// Ends the process of one connection at once; returns when it is gone.
    pub(super) fn kill_child(&self, pid: u32) {
        let child = self.child(pid);
        signal(child, Signal::KILL);
        while !matches!(state(child), None | Some('Z')) {
            sleep(LOOK_EVERY);
        }
    }

    /// Ends the connections, sends everything to the standbys, and ends.
    pub(super) async fn shut_down(&mut self) -> ExitStatus {
        self.postmaster.signal(Signal::INT);
        self.postmaster.wait().await
    }
}

impl Drop for Processes {
    /// A server that is killed would leave shared memory behind.
    fn drop(&mut self) {
        self.stopped = None;
        if self.postmaster.has_ended() {
            return;
        }
        self.postmaster.signal(Signal::QUIT);
        let mut left = SHUTDOWN;
        while !self.postmaster.has_ended() && !left.is_zero() {
            sleep(LOOK_EVERY);
            left = left.saturating_sub(LOOK_EVERY);
        }
    }
}

/// Processes that stand still until this is dropped, or until this process has ended.
#[derive(Debug)]
struct Stopped(Child);

impl Stopped {
    fn of(postmaster: u32, children: &[Pid]) -> Self {
        let pids = children.iter().map(|it| it.as_raw_pid().to_string());
        let guardian = Command::new("sh")
            // It reads until the other end is closed, by our end.
            .args(["-c", r#"cat; kill -CONT "$@" 2>/dev/null"#, "sh"])
            .args(pids.chain([postmaster.to_string()]))
            .stdin(Stdio::piped())
            .spawn();
        Self(guardian.expect("a shell"))
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// Removes what a killed server has left behind, which the next one would do if there is one.
fn remove_shared_memory(data: &Path) {
    let file = fs::read_to_string(data.join("postmaster.pid")).unwrap_or_default();
    // Its seventh line has a key and a number.
    let number = file
        .lines()
        .nth(6)
        .and_then(|it| it.split_whitespace().nth(1));
    if let Some(number) = number {
        let mut remove = Command::new("ipcrm");
        // Where there is no such program, 56 bytes stay.
        let _ = remove.args(["-m", number]).stderr(Stdio::null()).status();
    }
}

/// The children of a process.
fn children(parent: u32) -> Vec<Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| stat(*pid).is_some_and(|(_, it)| it == parent))
        .filter_map(Pid::from_raw)
        .collect()
}

/// What a process does, such as `T` for standing still; nothing if it is gone.
fn state(process: Pid) -> Option<char> {
    stat(process.as_raw_pid()).map(|(state, _)| state)
}

/// The state and the parent of a process.
fn stat(pid: i32) -> Option<(char, u32)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in brackets, may contain anything.
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut words = rest.split(' ');
    let state = words.next()?.chars().next()?;
    Some((state, words.next()?.parse().ok()?))
}

/// Sends a signal to a process that may have ended.
fn signal(process: Pid, signal: Signal) {
    let _ = kill_process(process, signal);
}
