//! The clock that measures leases, which tests can move.

use std::fmt;
use std::future::Future;
use std::num::NonZeroU64;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

#[cfg(feature = "testing")]
use tokio::runtime::Handle;
use tokio::sync::Notify;
#[cfg(feature = "testing")]
use tokio::time::Instant;

/// The longest uninterrupted sleep: timers do not count suspend, the clock
/// does, so a sleeper looks at the clock again at least this often.
const LONGEST_NAP: Duration = Duration::from_secs(1);

/// Measures leases: monotonic, and counting the time that the machine was
/// suspended (`CLOCK_BOOTTIME`) on Linux and Android. Elsewhere it is
/// [`std::time::Instant`]. Never wall-clock time.
///
/// Tests use a [`Clock::manual`] and move the time themselves:
///
/// ```
/// # async fn example() -> Result<(), lock_runtime::LockError> {
/// use std::time::Duration;
/// use lock_runtime::{Clock, LockConfig, LockManager};
///
/// let clock = Clock::manual();
/// let locks = LockManager::connect(LockConfig::new("memory:")?.clock(clock.clone())).await?;
/// let guard = locks.lock("nightly").renew(false).acquire().await?;
/// clock.advance(Duration::from_secs(60));
/// assert!(!guard.is_held());
/// # Ok(()) }
/// ```
#[derive(Clone, Default)]
pub struct Clock(Source);

#[derive(Clone, Default)]
enum Source {
    #[default]
    Machine,
    Manual(Arc<Manual>),
    #[cfg(feature = "testing")]
    Runtime(Handle, Instant),
}

#[derive(Default)]
struct Manual {
    now: AtomicU64,
    moved: Notify,
}

/// A point in time on a [`Clock`], in nanoseconds since an arbitrary start. Never zero, so that an `Option` of it
/// takes no more memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(NonZeroU64);

impl Clock {
    /// The clock of the machine.
    pub fn machine() -> Self {
        Self(Source::Machine)
    }

    /// A clock that stands still until [`advance`](Self::advance) moves it.
    pub fn manual() -> Self {
        Self(Source::Manual(Arc::default()))
    }

    /// The clock of the tokio runtime that this is called in, which may be paused.
    #[cfg(feature = "testing")]
    pub(crate) fn of_this_runtime() -> Self {
        Self(Source::Runtime(Handle::current(), Instant::now()))
    }

    /// Lets `time` pass on a manual clock; the machine's clock cannot be moved
    /// and ignores it.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// use std::time::Duration;
    ///
    /// use lock_runtime::{Clock, LockConfig, LockManager};
    ///
    /// let clock = Clock::manual();
    /// let config = LockConfig::new("memory:")?.clock(clock.clone());
    /// let locks = LockManager::connect(config).await?;
    /// let first = locks.lock("nightly").min_hold(Duration::from_secs(60)).acquire().await?;
    /// first.release_confirmed().await?;
    /// assert!(locks.lock("nightly").try_once().acquire().await.is_err());
    /// clock.advance(Duration::from_secs(60));
    /// locks.lock("nightly").acquire().await?;
    /// # Ok(()) }
    /// ```
    pub fn advance(&self, time: Duration) {
        if let Source::Manual(manual) = &self.0 {
            let later = |now: u64| Some(now.saturating_add(nanos(time)));
            // An error says that there is no later time, which is never.
            let _ = manual
                .now
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, later);
            manual.moved.notify_waiters();
        }
    }

    /// Whether both show the same time, now and later.
    pub(crate) fn is(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Source::Machine, Source::Machine) => true,
            (Source::Manual(one), Source::Manual(other)) => Arc::ptr_eq(one, other),
            #[cfg(feature = "testing")]
            (Source::Runtime(_, one), Source::Runtime(_, other)) => one == other,
            _ => false,
        }
    }

    pub(crate) fn now(&self) -> Moment {
        match &self.0 {
            Source::Manual(manual) => {
                Moment::from_nanos(manual.now.load(Ordering::SeqCst).saturating_add(1))
            }
            Source::Machine => Moment::from_nanos(machine_nanos()),
            #[cfg(feature = "testing")]
            Source::Runtime(runtime, start) => {
                let _runtime = runtime.enter();
                Moment::from_nanos(1 + nanos(start.elapsed()))
            }
        }
    }

    /// Returns when the clock has reached `moment`. Needs a tokio runtime.
    pub(crate) async fn sleep_until(&self, moment: Moment) {
        if let Source::Manual(manual) = &self.0 {
            loop {
                let moved = manual.moved.notified();
                if self.now() >= moment {
                    return;
                }
                moved.await;
            }
        }
        loop {
            let rest = moment.since(self.now());
            if rest.is_zero() {
                return;
            }
            tokio::time::sleep(rest.min(LONGEST_NAP)).await;
        }
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Source::Machine => "Clock::machine",
            Source::Manual(_) => "Clock::manual",
            #[cfg(feature = "testing")]
            Source::Runtime(..) => "Clock::of_this_runtime",
        })
    }
}

/// A sleep whose end can change between polls. If the new end is later, the old timer
/// stays and wakes for nothing: setting a new one would wake the thread as well.
#[derive(Default)]
pub(crate) struct Sleep(Option<(Moment, Nap)>);

type Nap = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Sleep {
    /// Ready from `end` on.
    pub(crate) fn poll_until(
        &mut self,
        cx: &mut Context<'_>,
        clock: &Clock,
        end: Option<Moment>,
    ) -> Poll<()> {
        let Some(end) = end else {
            return Poll::Pending;
        };
        while clock.now() < end {
            if self.0.as_ref().is_none_or(|(set, _)| *set > end) {
                let clock = clock.clone();
                self.0 = Some((end, Box::pin(async move { clock.sleep_until(end).await })));
            }
            if let Some((_, nap)) = &mut self.0
                && nap.as_mut().poll(cx).is_pending()
            {
                return Poll::Pending;
            }
            self.0 = None;
        }
        Poll::Ready(())
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sleep({:?})", self.0.as_ref().map(|(end, _)| end))
    }
}

impl Moment {
    /// Zero counts as one.
    pub(crate) fn from_nanos(nanos: u64) -> Self {
        Self(NonZeroU64::new(nanos).unwrap_or(NonZeroU64::MIN))
    }

    pub(crate) fn as_nanos(self) -> u64 {
        self.0.get()
    }

    pub(crate) fn after(self, time: Duration) -> Self {
        Self(self.0.saturating_add(nanos(time)))
    }

    /// The time from `earlier` to here, zero where `earlier` is later.
    pub(crate) fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.as_nanos().saturating_sub(earlier.as_nanos()))
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

// Miri has no such clock.
#[cfg(all(any(target_os = "linux", target_os = "android"), not(miri)))]
fn machine_nanos() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}

#[cfg(any(miri, not(any(target_os = "linux", target_os = "android"))))]
fn machine_nanos() -> u64 {
    use std::time::Instant;

    use once_cell::sync::Lazy;

    static START: Lazy<Instant> = Lazy::new(Instant::now);
    1 + nanos(START.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_clock_never_goes_back() {
        let clock = Clock::manual();
        clock.advance(Duration::from_secs(1));
        let mut before = clock.now();
        for time in [Duration::MAX, Duration::from_secs(1), Duration::MAX] {
            clock.advance(time);
            assert!(clock.now() >= before);
            before = clock.now();
        }
    }
}
