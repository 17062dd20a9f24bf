//! A second process that ends the command when `lockctl` cannot: when it was killed, or
//! stands still for longer than the lease lasts.

use std::io::{self, BufRead as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::exit::{Exit, Failure};
use crate::run::child::ourselves;

/// How much later than `lockctl` it acts, which is to act itself if it can.
const SLACK: Duration = Duration::from_millis(500);

/// The word that says that there is nothing to guard any more.
const DONE: &str = "done";

/// Our end of the guardian, which hears lines from us.
#[derive(Debug)]
pub(super) struct Guardian {
    process: Child,
    lines: Option<ChildStdin>,
}

impl Guardian {
    /// Starts it before there is anything to guard. It is in no group that gets signals.
    pub(super) fn start() -> Result<Self, Failure> {
        let mut command = Command::new(ourselves()?);
        command.arg("__guard").process_group(0);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut process = command
            .spawn()
            .map_err(|it| Failure::system("lockctl", it))?;
        let lines = process.stdin.take();
        Ok(Self { process, lines })
    }

    /// Tells which group to end, and how long it has after SIGTERM.
    pub(super) fn guard(&mut self, group: Pid, grace: Duration) {
        self.tell(&format!("{group} {}", grace.as_millis()));
    }

    /// Tells for how long the lease lasts at least.
    pub(super) fn renew(&mut self, left: Duration) {
        self.tell(&left.as_millis().to_string());
    }

    /// Ends it: the command has ended.
    pub(super) fn dismiss(mut self) {
        self.tell(DONE);
        self.lines = None;
        // Nothing is left to be done about one that does not end.
        let _ = self.process.wait();
    }

    fn tell(&mut self, line: &str) {
        if let Some(lines) = &mut self.lines {
            // If it was killed, we are still there.
            let _ = lines.write_all(format!("{line}\n").as_bytes());
        }
    }
}

/// What the second process does.
pub(crate) fn guard() -> Exit {
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    let Some((group, grace)) = lines.recv().ok().and_then(|line| read_task(&line)) else {
        return Exit::Success;
    };
    match watch(&lines) {
        Watched::Done => {}
        Watched::Nothing => {
            // `lockctl` and its lease may go on, but it says nothing.
            let _ = killpg(group, Signal::SIGTERM);
            let _ = killpg(group, Signal::SIGCONT);
            std::thread::sleep(grace);
            let _ = killpg(group, Signal::SIGKILL);
        }
        Watched::Gone => {
            let _ = killpg(group, Signal::SIGKILL);
        }
    }
    Exit::Success
}

/// How the watch ended.
enum Watched {
    /// There is nothing to guard any more.
    Done,
    /// The lease has ended, for all that is known.
    Nothing,
    /// `lockctl` has died.
    Gone,
}

fn watch(lines: &Receiver<String>) -> Watched {
    let mut left = None;
    loop {
        let line = match left {
            None => lines.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(left) => lines.recv_timeout(left),
        };
        match line {
            Ok(line) if line == DONE => return Watched::Done,
            Ok(line) => {
                let millis = line.parse().ok();
                left = millis.map(|it| Duration::from_millis(it) + SLACK);
            }
            Err(RecvTimeoutError::Timeout) => return Watched::Nothing,
            Err(RecvTimeoutError::Disconnected) => return Watched::Gone,
        }
    }
}

fn read_task(line: &str) -> Option<(Pid, Duration)> {
    let (group, grace) = line.split_once(' ')?;
    let grace = Duration::from_millis(grace.parse().ok()?);
    Some((Pid::from_raw(group.parse().ok()?), grace))
}
