//! A request for a lock, which is configured before the lock is taken.

use std::fmt;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use crate::api::acquire::Acquire;
use crate::api::settings::Settings;
use crate::api::shared::Shared;
use crate::base::block_on::block_on;
use crate::held::guard::LockGuard;
use crate::types::error::LockError;
use crate::types::holder;
use crate::types::keys::Keys;
use crate::types::kind::Kind;
use crate::types::terms::Wait;
use crate::types::ticket::Ticket;

/// Why a test cannot wait for its own runtime.
const IN_A_TASK: &str = "`testing::Locks` runs in the runtime of its test, which a blocking call would stop: test synchronous \
    code with `LockManager::connect_blocking(\"memory:\")`";

/// A request for a lock, with setters for everything that has a default.
/// [`LockManager::lock`](crate::LockManager::lock) and [`lock_all`](crate::LockManager::lock_all)
/// create it.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), lock_runtime::LockError> {
/// use std::time::Duration;
///
/// use lock_runtime::{LockError, LockManager};
///
/// let locks = LockManager::connect("memory:").await?;
/// let request = locks.lock("nightly").ttl(Duration::from_secs(30)).try_once();
/// match request.acquire().await {
///     Ok(guard) => guard.hold(async { println!("the report is written") }).await?,
///     Err(LockError::Contended { .. }) => println!("another machine is writing it"),
///     Err(error) => return Err(error),
/// }
/// # Ok(()) }
/// ```
#[must_use = "nothing is locked before `acquire` or `run`"]
pub struct LockRequest {
    shared: Arc<Shared>,
    keys: Result<Keys, LockError>,
    settings: Settings,
}

impl LockRequest {
    #[track_caller]
    pub(crate) fn new(shared: Arc<Shared>, keys: Result<Keys, LockError>) -> Self {
        Self {
            shared,
            keys,
            settings: Settings {
                asked_at: Some(Location::caller()),
                ..Settings::DEFAULT
            },
        }
    }

    /// Makes it a request for the lock of a ticket.
    pub(crate) fn adopting(mut self, ticket: &Ticket) -> Self {
        self.settings.adopt(ticket);
        self
    }

    /// Makes it the request of a candidate that publishes `data` when it leads.
    pub(crate) fn electing(mut self, data: Arc<str>) -> Self {
        self.settings.data = Some(data);
        // A leader holds its lock for long, and the others wait for as long: the alerts leave them out by this.
        self.settings.function = Some("election");
        self.wait_forever()
    }

    /// The lease: how long the lock survives a crash of its holder; 100 ms to 24 h. The default is the manager's,
    /// [`LockConfig::ttl`](crate::LockConfig::ttl).
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// let guard = locks.lock("nightly").ttl(Duration::from_secs(60)).acquire().await?;
    /// assert!(guard.remaining() > Duration::from_secs(10)); // the default
    /// # Ok(()) }
    /// ```
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.settings.ttl = Some(ttl);
        self
    }

    /// How long to wait for a held lock; zero tries once. The default is the manager's,
    /// [`LockConfig::wait`](crate::LockConfig::wait). The first answer of the server may take
    /// up to 750 ms, even if this is shorter. Without a connection, a request with zero fails at
    /// once.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// use std::time::Duration;
    ///
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// let request = locks.lock("stock:lamp").wait(Duration::from_millis(300));
    /// let guard = request.acquire().await?;
    /// # Ok(()) }
    /// ```
    pub fn wait(mut self, wait: Duration) -> Self {
        self.settings.wait = Some(Wait::AtMost(wait));
        self
    }

    /// Does not wait for a held lock: the same as a [`wait`](Self::wait) of zero.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// use lock_runtime::LockError;
    ///
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// let _guard = locks.lock("nightly").acquire().await?;
    /// let second = locks.lock("nightly").try_once().acquire().await;
    /// assert!(matches!(second, Err(LockError::Contended { .. })));
    /// # Ok(()) }
    /// ```
    pub fn try_once(self) -> Self {
        self.wait(Duration::ZERO)
    }

    /// Waits without a limit while the server answers;
    /// [`unavailable_wait`](crate::LockConfig::unavailable_wait) limits its silence.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// locks.lock("nightly").wait_forever().run(async |_| ()).await?;
    /// # Ok(()) }
    /// ```
    pub fn wait_forever(mut self) -> Self {
        self.settings.wait = Some(Wait::Forever);
        self
    }

    /// With `false`, the lease is not renewed, and ends after its ttl.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// let request = locks.lock("nightly").ttl(Duration::from_millis(100)).renew(false);
    /// let guard = request.acquire().await?;
    /// guard.lost().await; // after a tenth of a second
    /// assert!(!guard.is_held());
    /// # Ok(()) }
    /// ```
    pub fn renew(mut self, renew: bool) -> Self {
        self.settings.renew = renew;
        self
    }

    /// Shares the lock with other readers. Readers and writers are served in the order of their
    /// arrival.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// let one = locks.lock("prices").read().acquire().await?;
    /// let other = locks.lock("prices").read().acquire().await?;
    /// assert!(one.is_held() && other.is_held());
    /// # Ok(()) }
    /// ```
    pub fn read(mut self) -> Self {
        self.settings.kind = Kind::Read;
        self
    }

    /// Takes the lock exclusively, which is the default.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// let writer = locks.lock("prices").write().acquire().await?;
    /// assert!(locks.lock("prices").read().try_once().acquire().await.is_err());
    /// # Ok(()) }
    /// ```
    pub fn write(mut self) -> Self {
        self.settings.kind = Kind::Exclusive;
        self
    }

    /// Shares the lock among up to this many holders. A request with another number waits in the
    /// queue until nobody holds the lock with the present number; then its number applies.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// let one = locks.lock("encode").permits(2).acquire().await?;
    /// let two = locks.lock("encode").permits(2).acquire().await?;
    /// assert!(locks.lock("encode").permits(2).try_once().acquire().await.is_err());
    /// # Ok(()) }
    /// ```
    pub fn permits(mut self, permits: u32) -> Self {
        self.settings.kind = Kind::Permits(permits);
        self
    }

    /// Takes this many of the [`permits`](Self::permits) at once, all or none: at least 1, at most
    /// as many as there are, and fewer than 1000. Nobody overtakes a waiter that needs several, so
    /// that it gets its turn.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// let large = locks.lock("encode").permits(4).take(3).acquire().await?;
    /// let small = locks.lock("encode").permits(4).acquire().await?;
    /// assert!(locks.lock("encode").permits(4).try_once().acquire().await.is_err());
    /// # Ok(()) }
    /// ```
    pub fn take(mut self, permits: u32) -> Self {
        self.settings.take = Some(permits);
        self
    }

    /// Joins the queue only if fewer than this many wait for the lock; at least 1. Otherwise the
    /// store refuses at once with [`LockError::Contended`], whose
    /// [`retry_after`](LockError::retry_after) estimates when another attempt is worthwhile.
    ///
    /// Set it for every request for the lock: waiters without it may pass the lock on within their
    /// process, and are not counted then. A request that tries once ignores the number of the
    /// [configuration](crate::LockConfig::max_waiters).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// let request = locks.lock("report").max_waiters(8);
    /// request.run(async |_| ()).await?;
    /// # Ok(()) }
    /// ```
    pub fn max_waiters(mut self, waiters: u32) -> Self {
        self.settings.max_waiters = Some(waiters);
        self
    }

    /// Re-enters the lock if the caller already runs under it, instead of failing with
    /// [`LockError::AlreadyHeld`]. The new guard is for the same lease, which ends with the first
    /// guard. A reader cannot re-enter as a writer.
    ///
    /// The request's own [`max_hold`](Self::max_hold), or its `ttl` with
    /// [`renew(false)`](Self::renew), ends its guard, while the lock and the outer work continue.
    /// Its [`min_hold`](Self::min_hold), and a `ttl` with renewals, are ignored: the first request
    /// has set them.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// let request = locks.lock("order:7");
    /// let joined = request.run(async |_| {
    ///     let inner = locks.lock("order:7").reentrant().acquire().await?;
    ///     Ok::<_, lock_runtime::LockError>(inner.fencing_token())
    /// });
    /// joined.await??;
    /// # Ok(()) }
    /// ```
    pub fn reentrant(mut self) -> Self {
        self.settings.reentrant = true;
        self
    }

    /// Keeps the lock closed for at least this long after the grant, for work that must not run
    /// twice in a row; at most 24 h.
    ///
    /// A lock that is released earlier cools down until then, even if the work has panicked or was
    /// dropped. The release does not wait for the end of the cooldown. After a crash, the lock is
    /// free when its ttl ends. A lost lock skips the cooldown.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// use std::time::Duration;
    ///
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// let minute = Duration::from_secs(60);
    /// locks.lock("nightly").min_hold(minute).run(async |_| "done").await?;
    /// // Another machine whose clock is behind does not run it again.
    /// assert!(locks.lock("nightly").try_once().acquire().await.is_err());
    /// # Ok(()) }
    /// ```
    pub fn min_hold(mut self, time: Duration) -> Self {
        self.settings.min_hold = Some(time);
        self
    }

    /// Ends the lease at most this long after the grant, and stops the work under it; 10 ms to 24
    /// h. The lock is free at once, or when the [running poll](LockGuard::hold) has returned. Work
    /// under [`hold_unstopped`](LockGuard::hold_unstopped) or `on_lost = "notify"` is notified
    /// instead, and runs on without the lock.
    ///
    /// With several keys, the time of each key counts from its own grant, as for a fixed lease.
    /// Choose a longer time than the wait for the other keys, since the request starts again if it
    /// loses a key.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// use std::time::Duration;
    ///
    /// use lock_runtime::LockError;
    ///
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// let request = locks.lock("nightly").max_hold(Duration::from_millis(50));
    /// let stopped = request.run(async |_| std::future::pending::<()>().await).await;
    /// assert!(matches!(stopped, Err(LockError::Lost { .. })));
    /// # Ok(()) }
    /// ```
    pub fn max_hold(mut self, time: Duration) -> Self {
        self.settings.max_hold = Some(time);
        self
    }

    /// The function that takes the lock, for events and for queries about its holder:
    /// `"shop::restock"`, or `concat!(module_path!(), "::restock")`. At most 256 bytes without
    /// whitespace and control characters. The attribute names its function itself.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// let _guard = locks.lock("stock").function("shop::restock").acquire().await?;
    /// let holders = locks.status("stock").await?.holders;
    /// assert_eq!(holders[0].function.as_deref(), Some("shop::restock"));
    /// # Ok(()) }
    /// ```
    pub fn function(mut self, path: &'static str) -> Self {
        self.settings.function = Some(path);
        self
    }

    /// The key without its values, for events and metrics: `"stock:{item}"`. Locks of one template
    /// are counted together. The attribute sets its own template; several keys are joined by
    /// commas.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// # let item = 7;
    /// let request = locks.lock(format!("stock:{item}")).template("stock:{item}");
    /// request.run(async |_| ()).await?;
    /// # Ok(()) }
    /// ```
    pub fn template(mut self, template: &'static str) -> Self {
        self.settings.template = Some(template);
        self
    }

    /// Takes the lock, or several locks all or none. Dropping the future cancels the acquisition,
    /// which leaves neither a key nor a position in a queue.
    ///
    /// Several keys are taken one after the other. If one is lost while the request waits for a
    /// later one, the request releases the others and starts again with the first key, as long as
    /// its wait lasts.
    ///
    /// Prefer [`wait`](Self::wait) to a timeout around this call: it uses the same clock as the
    /// leases. In tests with tokio's paused clock, a timeout elapses at once, since that clock
    /// jumps while the runtime waits for a server.
    ///
    /// # Errors
    ///
    /// [`LockError::Contended`] if the lock stayed held, [`LockError::Unavailable`] if the server
    /// could not be reached or refused to serve, [`LockError::InvalidKey`] and
    /// [`LockError::InvalidOptions`] for an invalid request, [`LockError::AlreadyHeld`] under
    /// [`hold`](LockGuard::hold) of the same lock, [`LockError::ShutDown`] after a shutdown.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// let guard = locks.lock("stock:lamp").acquire().await?;
    /// println!("held, with the fencing token {}", guard.fencing_token());
    /// guard.release();
    /// # Ok(()) }
    /// ```
    pub fn acquire(self) -> Acquire {
        let function = self.settings.function.map_or(Ok(()), check_function);
        let keys = self.keys.and_then(|keys| function.map(|()| keys));
        Acquire::new(self.shared, &self.settings, keys)
    }

    /// The same as [`acquire`](Self::acquire) for synchronous code: blocks the thread. It needs no
    /// runtime. Do not call it in async code, where it would block other tasks.
    ///
    /// The lease is renewed, but nothing can stop synchronous code when the lock is lost: ask
    /// [`LockGuard::is_held`] before each step that must not be repeated, and send the [fencing
    /// token](LockGuard::fencing_token) with each write.
    ///
    /// ```
    /// use lock_runtime::LockManager;
    ///
    /// let locks = LockManager::connect_blocking("memory:")?; // or "redis://127.0.0.1:6379"
    /// let guard = locks.lock("stock:lamp").acquire_blocking()?;
    /// assert!(guard.is_held());
    /// guard.release();
    /// # Ok::<_, lock_runtime::LockError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`acquire`](Self::acquire), and [`LockError::InvalidOptions`] with a manager of
    /// `testing::Locks`, which runs in the runtime of its test: that would wait for itself.
    pub fn acquire_blocking(self) -> Result<LockGuard, LockError> {
        if self.shared.mailbox.may_be_blocked() {
            return Err(LockError::invalid("acquire_blocking", IN_A_TASK));
        }
        block_on(self.acquire())
    }

    /// Takes the lock, runs `body` under it, and releases it.
    ///
    /// # Errors
    ///
    /// Those of [`acquire`](Self::acquire), and [`LockError::Lost`] if the lease ended while the
    /// body ran, which has been dropped then.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// let request = locks.lock("stock:lamp");
    /// let fence = request.run(async |guard| guard.fencing_token()).await?;
    /// # Ok(()) }
    /// ```
    pub async fn run<T>(self, body: impl AsyncFnOnce(&LockGuard) -> T) -> Result<T, LockError> {
        let guard = self.acquire().await?;
        let held = &guard;
        // A closure that returns a future does some of its work before: that counts, too.
        let output = guard.hold(async move { body(held).await }).await?;
        guard.release();
        Ok(output)
    }
}

/// As [`acquire`](LockRequest::acquire).
impl IntoFuture for LockRequest {
    type Output = Result<LockGuard, LockError>;
    type IntoFuture = Acquire;

    fn into_future(self) -> Acquire {
        self.acquire()
    }
}

fn check_function(path: &str) -> Result<(), LockError> {
    const MAX_BYTES: usize = 256;
    if path.len() > MAX_BYTES || !holder::is_one_word(path) {
        return Err(LockError::invalid(
            "function",
            "it must have 1 to 256 bytes, no whitespace and no control characters",
        ));
    }
    Ok(())
}

impl fmt::Debug for LockRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockRequest")
            .field("keys", &self.keys.as_ref().map(Keys::list))
            .field("kind", &self.settings.kind)
            .field("ttl", &self.settings.ttl)
            .field("function", &self.settings.function)
            .finish_non_exhaustive()
    }
}
