//! The one waker of all polls of the engine, and the turns of a poll. It has three states:
//!
//! | state | means | a wake-up |
//! |---|---|---|
//! | `IDLE` | no thread polls, and nothing has happened since the last turn | sets `WOKEN` and wakes the thread |
//! | `POLLING` | a thread is in a turn | sets `WOKEN`, which that thread sees at the end of its turn |
//! | `WOKEN` | there is work, and a thread knows | changes nothing |
//!
//! No wake-up is lost. A turn sets `POLLING` before it looks for work, and ends by
//! exchanging `POLLING` for `IDLE`. If a wake-up came in between, the exchange fails,
//! and another turn follows or, after a few of them, the thread is woken. If it comes
//! later, it finds `IDLE` and wakes the thread itself. A wake-up that finds `WOKEN`
//! comes after one that has woken the thread, or that a poller has yet to see, and
//! the turn that follows sees the work of both.
//!
//! `spec/tests/interleavings.rs` tries every order of two callers and the thread.

use std::sync::Arc;
use std::task::{Wake, Waker};
use std::thread;

use crate::base::last_waker::LastWaker;
use crate::base::sync::{AtomicU8, Ordering};

/// How many turns one poll makes in a row before others get to theirs.
const TURNS_IN_A_ROW: usize = 4;

/// Notes that there is work, and wakes the driver's thread for it unless a thread polls, which
/// sees the note.
#[derive(Default)]
pub(super) struct WakeFlag {
    state: AtomicU8,
    thread: LastWaker,
}

const IDLE: u8 = 0;
const POLLING: u8 = 1;
const WOKEN: u8 = 2;

impl WakeFlag {
    /// The waker of the driver's thread.
    pub(super) fn runs_on(&self, thread: &Waker) {
        self.thread.set(thread);
    }

    /// From here on the polling thread sees all wake-ups.
    pub(super) fn begin(&self) {
        self.state.store(POLLING, Ordering::SeqCst);
    }

    /// Takes turns as long as there is work; after a few of them, leaves the rest to the thread. To
    /// be called by one thread at a time.
    pub(super) fn turns(&self, mut turn: impl FnMut()) {
        let _alarm = Alarm(self);
        for _ in 0..TURNS_IN_A_ROW {
            self.begin();
            turn();
            if self.end() {
                return;
            }
        }
        self.wake_thread();
    }

    pub(super) fn is_woken(&self) -> bool {
        self.state.load(Ordering::Relaxed) == WOKEN
    }

    /// Whether there was no wake-up since [`begin`](Self::begin).
    fn end(&self) -> bool {
        let exchanged =
            self.state
                .compare_exchange(POLLING, IDLE, Ordering::SeqCst, Ordering::SeqCst);
        exchanged.is_ok()
    }

    pub(super) fn wake_thread(&self) {
        self.thread.wake();
    }
}

impl Wake for WakeFlag {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.state.swap(WOKEN, Ordering::SeqCst) == IDLE {
            self.wake_thread();
        }
    }
}

/// Wakes the driver's thread for a turn that has panicked.
struct Alarm<'a>(&'a WakeFlag);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.state.store(WOKEN, Ordering::SeqCst);
            self.0.wake_thread();
        }
    }
}
