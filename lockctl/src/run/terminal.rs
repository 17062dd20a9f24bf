//! The terminal, which is lent to the command while it runs: it may ask questions, and
//! Ctrl-C reaches it as it would without us.

use std::io::{self, IsTerminal as _, stdin, stdout};

use nix::sys::signal::{SigSet, Signal};
use nix::unistd::{Pid, getpgrp, tcgetpgrp, tcsetpgrp};

/// Whether it is ours to lend. In a pipe it is not: another program there may need the
/// terminal itself, as pagers do.
pub(super) fn is_ours() -> bool {
    stdin().is_terminal()
        && stdout().is_terminal()
        && tcgetpgrp(stdin()).is_ok_and(|group| group == getpgrp())
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

pub(super) fn take_back() {
    // It may be gone.
    let _ = give_to(getpgrp());
}
