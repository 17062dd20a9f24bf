//! The command: how it is started, signalled and waited for.

use std::io::{self, ErrorKind};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;

use lock_runtime::LockGuard;
use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, getpgrp, getppid};

use crate::cli::{ExecArgs, RunArgs};
use crate::exit::{Done, Exit, Failure};
use crate::run::terminal;

/// The running command. Its process is the leader of a group.
#[derive(Debug)]
pub(super) struct Child {
    pub(super) group: Pid,
}

/// How the command ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    /// Its exit code, or 128 and the number of its signal.
    pub(super) code: u8,
    /// An interrupt at the terminal ended it.
    pub(super) interrupted: bool,
    /// The lock had been lost by then.
    pub(super) lost: bool,
}

/// What has become of it.
#[derive(Clone, Copy, Debug)]
pub(super) enum State {
    Running,
    Stopped,
    Ended { code: u8, signal: Option<Signal> },
}

impl Child {
    /// Starts the command by way of [`exec`].
    pub(super) fn start(
        args: &RunArgs,
        guard: &LockGuard,
        foreground: bool,
    ) -> Result<Self, Failure> {
        let mut command = Command::new(ourselves()?);
        command.args(["__exec", "--parent", &std::process::id().to_string()]);
        if foreground {
            command.arg("--foreground");
        }
        command
            .arg("--")
            .args(&args.command)
            .env("LOCK_KEY", guard.key().as_str())
            .env("LOCK_FENCE", guard.fencing_token().to_string())
            .process_group(0);
        let child = command
            .spawn()
            .map_err(|it| Failure::system("lockctl", it))?;
        let number = i32::try_from(child.id()).unwrap_or(i32::MAX);
        Ok(Self {
            group: Pid::from_raw(number),
        })
    }

    /// Sends a signal to everything in its group; `false` if nothing is left of it.
    pub(super) fn signal(&self, signal: impl Into<Option<Signal>>) -> bool {
        killpg(self.group, signal).is_ok()
    }

    /// Asks it to end, also where it is stopped.
    pub(super) fn terminate(&self) -> bool {
        self.signal(Signal::SIGTERM) && self.signal(Signal::SIGCONT)
    }

    /// What has become of it since the last time.
    pub(super) fn state(&self) -> io::Result<State> {
        let flags = WaitPidFlag::WNOHANG | WaitPidFlag::WUNTRACED;
        Ok(match waitpid(self.group, Some(flags))? {
            WaitStatus::Exited(_, code) => State::Ended {
                code: u8::try_from(code).unwrap_or(u8::MAX),
                signal: None,
            },
            WaitStatus::Signaled(_, signal, _) => State::Ended {
                code: 128 + u8::try_from(signal as i32).unwrap_or(0),
                signal: Some(signal),
            },
            WaitStatus::Stopped(..) => State::Stopped,
            _ => State::Running,
        })
    }
}

/// The path of this program, which may have been replaced since it was started.
pub(super) fn ourselves() -> Result<PathBuf, Failure> {
    if cfg!(target_os = "linux") {
        return Ok("/proc/self/exe".into());
    }
    std::env::current_exe().map_err(|it| Failure::system("lockctl", it))
}

/// The child that becomes the command. It makes sure that the command does not outlive
/// `lockctl`, which it can do only itself.
pub(crate) fn exec(args: &ExecArgs) -> Done {
    #[cfg(target_os = "linux")]
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).map_err(|it| Failure::system("prctl", it))?;
    // It may have died before that.
    if getppid() != Pid::from_raw(args.parent) {
        return Ok(Exit::Failed);
    }
    if args.foreground {
        terminal::give_to(getpgrp()).map_err(|it| Failure::system("the terminal", it))?;
    }
    let (program, arguments) = (&args.command[0], &args.command[1..]);
    let error = Command::new(program).args(arguments).exec();
    eprintln!("lockctl: {}: {error}", program.to_string_lossy());
    Ok(Exit::Command(match error.kind() {
        ErrorKind::NotFound => 127,
        _ => 126,
    }))
}
