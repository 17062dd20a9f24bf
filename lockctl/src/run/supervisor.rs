//! Watches over the command and its lock until the command has ended.

use std::io;
use std::pin::pin;
use std::time::{Duration, Instant};

use lock_runtime::LockGuard;
use nix::sys::signal::{Signal, kill, raise};
use nix::unistd::{Pid, getpid, getsid};
use tokio::signal::unix::{Signal as Stream, SignalKind, signal};
use tokio::time::{sleep, sleep_until};

use crate::cli::{OnLost, RunArgs};
use crate::duration::short;
use crate::exit::Failure;
use crate::record::Occurrence;
use crate::run::Reporter;
use crate::run::child::{Child, Ended, State};
use crate::run::guardian::Guardian;
use crate::run::signals::Signals;
use crate::run::terminal;

/// The command, its lock, and everything that may happen to both.
#[derive(Debug)]
pub(super) struct Supervisor<'a> {
    args: &'a RunArgs,
    reporter: Reporter<'a>,
    guard: LockGuard,
    granted: Instant,
    signals: Signals,
    child: Child,
    /// Tells that the child has changed.
    changes: Stream,
    guardian: Guardian,
    /// Whether the terminal is lent to the command.
    lent: bool,
    lost: bool,
    /// Whether we have sent a stop to our own job, and hear of it ourselves.
    stopped_us: bool,
    /// When the grace of the command ends.
    kill_at: Option<tokio::time::Instant>,
}

impl<'a> Supervisor<'a> {
    /// Starts the command under its lock.
    pub(super) fn start(
        args: &'a RunArgs,
        guard: LockGuard,
        signals: Signals,
        reporter: Reporter<'a>,
    ) -> Result<Self, Failure> {
        let changes = signal(SignalKind::child()).map_err(|it| Failure::system("signals", it))?;
        let lent = terminal::is_ours();
        let mut guardian = Guardian::start()?;
        let child = Child::start(args, &guard, lent)?;
        guardian.guard(child.group, args.grace);
        Ok(Self {
            args,
            reporter,
            guard,
            granted: Instant::now(),
            signals,
            child,
            changes,
            guardian,
            lent,
            lost: false,
            stopped_us: false,
            kill_at: None,
        })
    }

    /// Returns when nothing of the command is left.
    pub(super) async fn run(mut self) -> Result<(Ended, LockGuard), Failure> {
        let (code, signal) = self
            .supervise()
            .await
            .map_err(|it| Failure::system("the command", it))?;
        if self.lent {
            terminal::take_back();
        }
        self.end_what_is_left().await;
        self.guardian.dismiss();
        let ended = Ended {
            code,
            interrupted: signal == Some(Signal::SIGINT) && self.lent,
            lost: self.lost,
        };
        Ok((ended, self.guard))
    }

    async fn supervise(&mut self) -> io::Result<(u8, Option<Signal>)> {
        loop {
            if let State::Ended { code, signal } = self.look()? {
                return Ok((code, signal));
            }
            let guards = self.args.on_lost == OnLost::Stop && !self.lost;
            let left = self.guard.remaining();
            if guards {
                self.guardian.renew(left);
            }
            let beat = (left / 4).clamp(Duration::from_millis(50), Duration::from_secs(5));
            let kill_at = self.kill_at;
            tokio::select! {
                biased;
                _ = self.changes.recv() => {}
                signal = self.signals.next() => self.signalled(signal)?,
                () = self.guard.lost(), if !self.lost => self.has_lost(),
                () = until(kill_at) => {
                    self.kill_at = None;
                    self.child.signal(Signal::SIGKILL);
                }
                () = sleep(beat), if guards => {}
            }
        }
    }

    /// What has become of the child. We stop when it was stopped at its terminal.
    fn look(&mut self) -> io::Result<State> {
        let state = self.child.state()?;
        if self.lent && matches!(state, State::Stopped) {
            terminal::take_back();
            self.pause()?;
        }
        Ok(state)
    }

    fn signalled(&mut self, signal: Signal) -> io::Result<()> {
        if signal == Signal::SIGTSTP && std::mem::take(&mut self.stopped_us) {
            return Ok(());
        }
        self.child.signal(signal);
        if signal == Signal::SIGTSTP {
            self.pause()?;
        }
        Ok(())
    }

    /// Stands still with the rest of our job until somebody lets us go on.
    fn pause(&mut self) -> io::Result<()> {
        // Nobody could let the leader of a session go on.
        if getsid(None)? != getpid() {
            if self.lent {
                // The others in the job; this process does not stop for it.
                self.stopped_us = true;
                kill(Pid::from_raw(0), Signal::SIGTSTP)?;
            }
            raise(Signal::SIGSTOP)?;
        }
        // The lease may have ended meanwhile; then the command is stopped instead, if it is to be.
        if !self.guard.is_held() && self.args.on_lost == OnLost::Stop {
            return Ok(());
        }
        if self.lent && terminal::is_ours() {
            terminal::give_to(self.child.group)?;
        }
        self.child.signal(Signal::SIGCONT);
        Ok(())
    }

    fn has_lost(&mut self) {
        self.lost = true;
        let over = self
            .args
            .max_hold
            .filter(|most| self.granted.elapsed() + Duration::from_millis(50) >= *most);
        let why = match over {
            Some(most) => format!("--max-hold of {} is over", short(most)),
            None => "the lock was lost".to_owned(),
        };
        let event = Occurrence {
            event: "lost",
            fence: Some(self.guard.fencing_token()),
            ..Occurrence::default()
        };
        match self.args.on_lost {
            OnLost::Stop => {
                self.reporter
                    .say(event, &format!("{why}: stopping the command"));
                self.child.terminate();
                self.kill_at = Some(tokio::time::Instant::now() + self.args.grace);
            }
            OnLost::Notify => self
                .reporter
                .say(event, &format!("{why}: the command runs on without it")),
        }
    }

    /// Ends what the command has left running in its group.
    async fn end_what_is_left(&mut self) {
        if !self.child.terminate() {
            return;
        }
        let deadline = self
            .kill_at
            .unwrap_or_else(|| tokio::time::Instant::now() + self.args.grace);
        let mut grace = pin!(sleep_until(deadline));
        while self.child.signal(None) {
            tokio::select! {
                () = &mut grace => {
                    self.child.signal(Signal::SIGKILL);
                    return;
                }
                () = sleep(Duration::from_millis(20)) => self.guardian.renew(self.guard.remaining()),
            }
        }
    }
}

async fn until(at: Option<tokio::time::Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}
