//! A body that notes every poll of it, and what a test asks about its lock.

use std::{
    convert::Infallible,
    future::poll_fn,
    pin::Pin,
    task::Poll,
    time::{Duration, Instant},
};

use lock_runtime::LockGuard;
use rustix::time::{ClockId, clock_gettime};
use tokio::{sync::watch, time::interval};

/// How often a body is polled at the least.
const BEAT: Duration = Duration::from_millis(5);

/// A poll that began just before the deadline may look at the clock just after.
const BLINK: Duration = Duration::from_millis(1);

/// What is known of a body that runs under a lock: see [`Pulse::beat`].
#[derive(Debug, Clone, Default)]
pub struct Pulse(watch::Sender<Polls>);

/// The polls of a body so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct Polls {
    /// How many there were.
    pub count: u64,
    /// How many there were after the local deadline.
    pub late: u64,
    /// When the last one began.
    pub last: Option<Instant>,
    /// When the body was dropped.
    pub dropped: Option<Instant>,
}

impl Pulse {
    /// A body that never ends, is polled every few milliseconds and notes each poll.
    pub fn beat(&self, guard: &LockGuard) -> impl Future<Output = Infallible> + Send {
        struct End(Pulse);
        impl Drop for End {
            fn drop(&mut self) {
                let now = Instant::now();
                self.0.0.send_modify(|polls| polls.dropped = Some(now));
            }
        }

        let end = End(self.clone());
        let mut ticks = interval(BEAT);
        let mut deadline = Instant::now();
        poll_fn(move |cx| {
            let remaining = guard.remaining();
            let now = Instant::now();
            if !remaining.is_zero() {
                deadline = now + remaining;
            }
            let late = now > deadline + BLINK;
            end.0.0.send_modify(|polls| {
                polls.count += 1;
                polls.late += u64::from(late);
                polls.last = Some(now);
            });
            while ticks.poll_tick(cx).is_ready() {}
            Poll::Pending
        })
    }

    /// Waits until the body has been polled so often.
    pub async fn reaches(&self, count: u64) {
        let mut polls = self.0.subscribe();
        let reached = polls.wait_for(|polls| polls.count >= count).await;
        reached.expect("the sender is ours");
    }

    /// What there was so far.
    pub fn polls(&self) -> Polls {
        *self.0.borrow()
    }
}

/// The time since the machine started, also while it was suspended; the same in all processes.
pub fn boottime() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    now.try_into().expect("the clock started at zero")
}

/// Polls a future once, which must not be ready then.
#[track_caller]
pub fn begin<F: Future>(future: &mut Pin<&mut F>) -> impl Future<Output = ()> {
    poll_fn(move |cx| {
        let pending = future.as_mut().poll(cx).is_pending();
        assert!(pending, "the future was ready at once");
        Poll::Ready(())
    })
}
