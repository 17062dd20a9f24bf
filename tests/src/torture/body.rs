//! The bodies of tortured processes: how long they are, how long their polls, and how each poll is noted.

use std::{future::poll_fn, pin::pin, sync::Mutex, thread, time::Duration};

use lock_runtime::{LockError, LockGuard};

use super::{
    Servers,
    history::{Grant, History, Kind, monotonic},
};

/// What sort of body a task has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bodies {
    /// They may outlast several leases.
    Long,
    /// They outlast their lease, which is not renewed, and nearly always a poll runs.
    Fixed,
    /// They end soon, so that there are many.
    Short,
    /// As short, but never of two locks at once: in a long queue for the second lock, a task would keep the first one for
    /// seconds.
    Crowded,
    /// As short, of readers and some writers.
    Reading,
    /// As short, of a few at once.
    Permitted,
    /// They end at once, and all want the same lock.
    Hot,
    /// As short, under locks that are handed on as tickets.
    Handed,
    /// As short, of elected leaders.
    Leading,
}

impl Bodies {
    /// How often a body writes, and its pause after each write.
    pub(super) fn length(self, servers: Servers) -> (u32, Duration) {
        let (writes, pause) = match self {
            // Half of them may outlast several leases.
            Self::Long if fastrand::bool() => (fastrand::u32(1..300), 5),
            Self::Long => (fastrand::u32(1..30), 5),
            Self::Fixed => {
                let polls = servers.ttl().as_millis() / servers.margin().as_millis();
                (4 * u32::try_from(polls).unwrap_or(u32::MAX), 0)
            }
            Self::Short
            | Self::Crowded
            | Self::Reading
            | Self::Permitted
            | Self::Handed
            | Self::Leading => (fastrand::u32(1..3), fastrand::u64(..2)),
            Self::Hot => (fastrand::u32(..2), 0),
        };
        (writes, Duration::from_millis(pause))
    }

    /// How much of the margin a poll takes.
    fn share(self) -> f64 {
        match (self, fastrand::u8(..128)) {
            (Self::Fixed, _) => 0.3 + 0.6 * fastrand::f64(),
            (_, 0) => 0.9 * fastrand::f64(),
            (_, 1..4) => 0.2 * fastrand::f64(),
            _ => 0.0,
        }
    }
}

/// Goes on in the same poll for less than the margin. It sleeps, so that the machine is left to others.
pub(super) fn linger(bodies: Bodies, margin: Duration) {
    let share = bodies.share();
    if share > 0.0 {
        thread::sleep(margin.mul_f64(share));
    }
}

/// Holds the lock during `body` and notes every poll of it: from the moment before the lock looks at its clock, since
/// what the clock says to the lock is not earlier, until it has returned.
pub(super) async fn noted<F: Future>(
    body: F,
    guard: &LockGuard,
    grants: &[Grant],
    history: &History,
) -> Result<F::Output, LockError> {
    noted_from(Kind::Enter, body, guard, grants, history).await
}

/// The same; this is its first poll.
pub(super) async fn noted_from<F: Future>(
    first: Kind,
    body: F,
    guard: &LockGuard,
    grants: &[Grant],
    history: &History,
) -> Result<F::Output, LockError> {
    let before = Mutex::new((Duration::ZERO, Duration::ZERO, true));
    let mut body = pin!(body);
    let mut kind = first;
    let mut holding = pin!(guard.hold(poll_fn(|cx| {
        let (at, deadline, held) = *before.lock().expect("no panic");
        let polled = body.as_mut().poll(cx);
        let until = monotonic();
        for grant in grants {
            let kind = if held { kind } else { Kind::Late };
            history.note_from(at, until, deadline, kind, *grant);
        }
        kind = Kind::Poll;
        polled
    })));
    poll_fn(|cx| {
        let (at, held) = (monotonic(), guard.is_held());
        *before.lock().expect("no panic") = (at, at + guard.remaining(), held);
        holding.as_mut().poll(cx)
    })
    .await
}
