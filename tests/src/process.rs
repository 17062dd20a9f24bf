//! Child processes that can be stopped and resumed, and that end with the test.

use std::{
    ffi::OsStr,
    io,
    process::{ExitStatus, Stdio},
    sync::LazyLock,
};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::net::runtime;

/// A child process with piped stdin and stdout; dropping it kills it and waits for its end.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    pid: Pid,
}

impl Process {
    /// Starts `program`, which is also killed when the test process ends without dropping anything.
    pub(crate) async fn spawn<A: AsRef<OsStr>>(
        program: &OsStr,
        args: impl IntoIterator<Item = A>,
    ) -> io::Result<(Self, ChildStdin, ChildStdout)> {
        let mut command = bound_to_us(program);
        command
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        let mut child = runtime()
            .spawn(async move { command.spawn() })
            .await
            .expect("spawning does not panic")?;

        let stdin = child.stdin.take().expect("stdin is piped");
        let stdout = child.stdout.take().expect("stdout is piped");
        let pid = child.id().expect("nobody has waited for the child yet");
        let pid = Pid::from_raw(pid.cast_signed()).expect("a child's id is not 0");
        Ok((Self { child, pid }, stdin, stdout))
    }

    /// The process id.
    pub(crate) fn pid(&self) -> u32 {
        self.pid.as_raw_pid().cast_unsigned()
    }

    /// Stops the process as if it were suspended; returns when it stands still.
    pub(crate) fn stop(&self) {
        kill_process(self.pid, Signal::STOP).expect("the process is running");
        self.wait_for(WaitIdOptions::STOPPED | WaitIdOptions::EXITED);
    }

    /// Lets a stopped process go on.
    pub(crate) fn resume(&self) {
        kill_process(self.pid, Signal::CONT).expect("the process is running");
    }

    /// Sends a signal to the process, which may have ended.
    pub(crate) fn signal(&self, signal: Signal) {
        let _ = kill_process(self.pid, signal);
    }

    /// Ends the process at once, stopped or not, and waits until it is gone.
    pub(crate) async fn kill(&mut self) {
        self.child.kill().await.expect("the process can be killed");
    }

    /// Whether it has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits until the process ends by itself.
    pub(crate) async fn wait(&mut self) -> ExitStatus {
        self.child
            .wait()
            .await
            .expect("the process can be waited for")
    }

    /// Blocks until the process has changed as `options` say, and leaves it to [`Child`] to collect its end.
    fn wait_for(&self, options: WaitIdOptions) {
        waitid(WaitId::Pid(self.pid), options | WaitIdOptions::NOWAIT)
            .expect("the process is our child");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) && self.child.start_kill().is_ok() {
            self.wait_for(WaitIdOptions::EXITED);
        }
    }
}

/// A command for `program` that the kernel kills with us, where util-linux can arrange that.
fn bound_to_us(program: &OsStr) -> Command {
    static SETPRIV: LazyLock<bool> = LazyLock::new(|| {
        std::process::Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "true"])
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    });
    if *SETPRIV {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(program);
        command
    } else {
        Command::new(program)
    }
}
