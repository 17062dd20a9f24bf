//! The terminal, which is lent to the command while it runs: it may ask questions, and
//! Ctrl-C reaches it as it would without us.

use std::io::{self, IsTerminal as _, stdin, stdout};

use nix::sys::signal::{SigSet, Signal};
use nix::unistd::{Pid, getpgrp, tcgetpgrp, tcsetpgrp};

/// A terminal that is ours to lend: this process is in its foreground, alone but for the
/// members of its own job.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terminal;

impl Terminal {
    /// None in a pipe: another program in it may need the terminal itself, as pagers do.
    pub(super) fn ours() -> Option<Self> {
        let is_ours = stdin().is_terminal()
            && stdout().is_terminal()
            && tcgetpgrp(stdin()).is_ok_and(|group| group == getpgrp());
        is_ours.then_some(Self)
    }

    /// Makes a process group the one that reads it and gets its signals.
    pub(super) fn give_to(group: Pid) -> io::Result<()> {
        // Who is not in the foreground is stopped for this, unless the signal is blocked.
        let stop = SigSet::from(Signal::SIGTTOU);
        stop.thread_block()?;
        let given = tcsetpgrp(stdin(), group);
        stop.thread_unblock()?;
        Ok(given?)
    }

    pub(super) fn take_back(self) {
        // It may be gone.
        let _ = Self::give_to(getpgrp());
    }
}
