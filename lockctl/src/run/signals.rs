//! Signals that are forwarded to the command.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::task::{Context, Poll};

use nix::sys::signal::Signal;
use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

use crate::exit::{Done, Exit, Failure};
use crate::run::child::ourselves;

const PASSED_ON: [Signal; 7] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGTSTP,
];

/// The signals that this process gets.
#[derive(Debug)]
pub(crate) struct Signals(Vec<(Signal, Stream)>);

impl Signals {
    /// Takes over all of them but those that are ignored, as under `nohup`: the command is
    /// to ignore them too.
    pub(crate) fn new() -> io::Result<Self> {
        let ignored = ignored();
        let mut streams = Vec::new();
        for number in PASSED_ON {
            if ignored & (1 << (number as i32 - 1)) == 0 {
                streams.push((number, signal(SignalKind::from_raw(number as i32))?));
            }
        }
        Ok(Self(streams))
    }

    /// The next one.
    pub(crate) async fn next(&mut self) -> Signal {
        std::future::poll_fn(|cx| self.poll(cx)).await
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Signal> {
        for (number, stream) in &mut self.0 {
            if stream.poll_recv(cx).is_ready() {
                return Poll::Ready(*number);
            }
        }
        Poll::Pending
    }
}

/// The signals that are ignored, a bit for each, where the system reports them.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}

/// Ends this process as an interrupt does, since a shell ends its own loop only then. What
/// this process does with the signal by now is forgotten with its program.
pub(crate) fn die_of_interrupt() -> Result<(), Failure> {
    let number = (Signal::SIGINT as i32).to_string();
    let error = Command::new(ourselves()?).args(["__raise", &number]).exec();
    Err(Failure::system("lockctl", error))
}

/// The program that [`die_of_interrupt`] becomes.
pub(crate) fn raise(number: i32) -> Done {
    let signal = Signal::try_from(number).map_err(|it| Failure::system("signal", it))?;
    nix::sys::signal::raise(signal).map_err(|it| Failure::system("signal", it))?;
    Ok(Exit::Command(128 + u8::try_from(number).unwrap_or(0)))
}
