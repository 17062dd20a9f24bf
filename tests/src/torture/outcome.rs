//! Judges how an acquisition of a tortured process ends: with the lock, with `Contended` after the wait, or with
//! `Unavailable`, and never long after the wait.

use std::time::{Duration, Instant};

use lock_runtime::{LockError, LockGuard};
use tokio::time::timeout;

/// For how long an acquisition may go on after its wait, on a busy machine.
const GRACE: Duration = Duration::from_secs(2);

/// How much sooner a wait may be over: the driver counts from the beginning of the turn in which it hears of it.
const EARLY: Duration = Duration::from_millis(50);

/// A process that was stopped gets this many tenths of a second more, since its own threads are late.
const TENTHS: u32 = 20;

/// When an acquisition may end without the lock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// How long the caller waits.
    pub(super) wait: Duration,
    /// Whether the queue may be full, which ends the wait at once.
    pub(super) limited: bool,
}

/// The guard, or `None` if there is none.
///
/// # Panics
///
/// If the acquisition ends otherwise.
pub(super) async fn acquired(
    acquire: impl Future<Output = Result<LockGuard, LockError>> + Unpin,
    bounds: Bounds,
) -> Option<LockGuard> {
    let asked = Instant::now();
    let outcome = ended(acquire, bounds.wait).await;
    let took = asked.elapsed();
    match outcome {
        Some(Ok(guard)) => Some(guard),
        Some(Err(LockError::Unavailable { .. })) => None,
        Some(Err(LockError::Contended { .. })) if bounds.limited || took + EARLY >= bounds.wait => {
            None
        }
        Some(Err(error)) => panic!("after {took:?} of {bounds:?}: {error}"),
        None => panic!("an acquisition goes on after {took:?} of {bounds:?}"),
    }
}

/// The outcome, unless it is long overdue.
async fn ended<F: Future + Unpin>(mut acquire: F, wait: Duration) -> Option<F::Output> {
    if let Ok(outcome) = timeout(wait + GRACE, &mut acquire).await {
        return Some(outcome);
    }
    for _ in 0..TENTHS {
        if let Ok(outcome) = timeout(Duration::from_millis(100), &mut acquire).await {
            return Some(outcome);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    const WAIT: Duration = Duration::from_millis(100);

    /// Whether an acquisition may end in this way, which gives no lock.
    async fn may_end(
        limited: bool,
        acquire: impl Future<Output = Result<LockGuard, LockError>> + Send + 'static,
    ) -> bool {
        let bounds = Bounds {
            wait: WAIT,
            limited,
        };
        let ended = tokio::spawn(acquired(Box::pin(acquire), bounds)).await;
        ended.is_ok_and(|guard| guard.is_none())
    }

    #[tokio::test]
    async fn nobody_is_refused_before_the_wait_is_over() {
        let refused = || async { Err(LockError::contended("k")) };
        assert!(!may_end(false, refused()).await);
        assert!(may_end(true, refused()).await);
        let later = async {
            tokio::time::sleep(WAIT).await;
            Err(LockError::contended("k"))
        };
        assert!(may_end(false, later).await);
    }

    #[tokio::test]
    async fn no_other_error_ends_a_wait() {
        assert!(may_end(false, ready(Err(LockError::unavailable("down")))).await);
        for error in [LockError::lost("k"), LockError::already_held("k")] {
            assert!(!may_end(true, ready(Err(error))).await);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_long_after_the_wait() {
        assert!(!may_end(true, pending()).await);
        let late = async {
            tokio::time::sleep(WAIT + GRACE + GRACE / 2).await;
            Err(LockError::unavailable("down"))
        };
        assert!(may_end(false, late).await);
    }
}
