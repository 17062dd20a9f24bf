//! Locks for the tests of programs: in memory, on tokio's clock, with faults on demand, a history,
//! and an eye on the order in which locks are taken.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use crate::api::config::LockConfig;
use crate::api::installed::Scope;
use crate::api::manager::LockManager;
use crate::backend::Backend;
use crate::backend::memory::Memory;
use crate::backend::testing::history::{Event, History, Recorded};
use crate::backend::testing::network::{Network, Remote};
use crate::base::clock::Clock;
use crate::driver;
use crate::held::guard::LockGuard;
use crate::types::error::LockError;
use crate::types::into_key::IntoKey;
use crate::types::query::Pattern;

/// A lease that outlasts every test.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The locks of one test: a [`manager`](Self::manager) on a store in memory that the test
/// controls.
///
/// The [module](crate::testing) has an overview.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), lock_runtime::LockError> {
/// use lock_runtime::LockError;
/// use lock_runtime::testing::Locks;
///
/// let locks = Locks::new();
/// let other = locks.hold("stock:lamp").await?;
/// let refused = locks.manager().lock("stock:lamp").try_once().acquire().await;
/// assert!(matches!(refused, Err(LockError::Contended { .. })));
/// drop(other);
/// # Ok(()) }
/// ```
pub struct Locks {
    ours: LockManager,
    /// Another holder, on the same store.
    others: LockManager,
    network: Arc<Network>,
    history: Arc<History>,
}

impl Locks {
    /// Locks on a store of their own, with the settings of [`LockConfig::new`].
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// use lock_runtime::testing::Locks;
    ///
    /// let (one, other) = (Locks::new(), Locks::new());
    /// let _guard = one.manager().lock("stock:lamp").acquire().await?;
    /// assert!(!other.is_held("stock:lamp")); // each has a store of its own
    /// # Ok(()) }
    /// ```
    #[expect(
        clippy::new_without_default,
        reason = "it needs a runtime around it, as no default does"
    )]
    pub fn new() -> Self {
        let clock = Clock::of_this_runtime();
        let store = Memory::alone(clock.clone());
        let others = manager(Box::new(store.beside()), &clock);
        let (network, history) = <(Arc<Network>, Arc<History>)>::default();
        let remote = Remote::new(store, Arc::clone(&network), clock.clone());
        let recorded = Recorded::new(remote, Arc::clone(&history));
        Self {
            ours: manager(Box::new(recorded), &clock),
            others,
            network,
            history,
        }
    }

    /// The manager, for the code under test; clone it if that code keeps a manager.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// use lock_runtime::LockManager;
    /// use lock_runtime::testing::Locks;
    ///
    /// struct Shop {
    ///     locks: LockManager,
    /// }
    ///
    /// let locks = Locks::new();
    /// let shop = Shop { locks: locks.manager().clone() };
    /// shop.locks.lock("stock:lamp").acquire().await?;
    /// assert_eq!(locks.history().len(), 2); // taken, and released
    /// # Ok(()) }
    /// ```
    pub fn manager(&self) -> &LockManager {
        &self.ours
    }

    /// Runs `future` with [`manager`](Self::manager) in place of the installed one:
    /// [`LockManager::scope`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// use lock_runtime::testing::Locks;
    /// use lock_runtime::{LockError, distributed_lock};
    ///
    /// #[distributed_lock(key = "stock:{item}")]
    /// async fn buy(item: &str) -> Result<(), LockError> {
    ///     Ok(())
    /// }
    ///
    /// let locks = Locks::new();
    /// locks.scope(buy("lamp")).await?;
    /// # Ok(()) }
    /// ```
    pub fn scope<F: Future>(&self, future: F) -> Scope<F> {
        self.ours.scope(future)
    }

    /// Takes a lock in the name of another holder, until the guard is dropped. Waits in the queue
    /// if the lock is held.
    ///
    /// # Errors
    ///
    /// Those of [`LockRequest::acquire`](crate::LockRequest::acquire).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// use lock_runtime::testing::Locks;
    ///
    /// let locks = Locks::new();
    /// let other = locks.hold("stock:lamp").await?;
    /// assert!(locks.manager().lock("stock:lamp").try_once().acquire().await.is_err());
    /// drop(other);
    /// locks.manager().lock("stock:lamp").acquire().await?;
    /// # Ok(()) }
    /// ```
    pub async fn hold(&self, key: impl IntoKey) -> Result<LockGuard, LockError> {
        let request = self.others.lock(key).ttl(DAY).function("somebody_else");
        request.acquire().await
    }

    /// Cuts the connection to the store: calls fail with [`LockError::Unavailable`], and held
    /// locks are lost at the end of their leases unless the connection comes back. Locks from
    /// [`hold`](Self::hold) stay held.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// use lock_runtime::LockError;
    /// use lock_runtime::testing::Locks;
    ///
    /// let locks = Locks::new();
    /// locks.disconnect();
    /// let refused = locks.manager().lock("stock:lamp").try_once().acquire().await;
    /// assert!(matches!(refused, Err(LockError::Unavailable { .. })));
    /// locks.reconnect();
    /// locks.manager().lock("stock:lamp").acquire().await?;
    /// # Ok(()) }
    /// ```
    pub fn disconnect(&self) {
        self.network.set_cut(true);
    }

    /// Restores the connection after [`disconnect`](Self::disconnect).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// use lock_runtime::testing::Locks;
    ///
    /// let locks = Locks::new();
    /// locks.disconnect();
    /// assert!(!locks.manager().health().await.grants);
    /// locks.reconnect();
    /// assert!(locks.manager().health().await.grants);
    /// # Ok(()) }
    /// ```
    pub fn reconnect(&self) {
        self.network.set_cut(false);
    }

    /// Delays each further request to the store by this time.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// use std::time::{Duration, Instant};
    ///
    /// use lock_runtime::testing::Locks;
    ///
    /// let locks = Locks::new();
    /// locks.delay(Duration::from_millis(20));
    /// let asked = Instant::now();
    /// locks.manager().lock("stock:lamp").acquire().await?;
    /// assert!(asked.elapsed() >= Duration::from_millis(20));
    /// # Ok(()) }
    /// ```
    pub fn delay(&self, time: Duration) {
        self.network.set_delay(time);
    }

    /// The locks that this manager has taken, released and lost, in order. A reentrant call adds
    /// nothing; of several keys each counts.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// use lock_runtime::testing::{Event, Locks};
    ///
    /// let locks = Locks::new();
    /// let guard = locks.manager().lock("stock:lamp").acquire().await?;
    /// locks.manager().force_release("stock:lamp").await?;
    /// guard.lost().await;
    /// let key = guard.key().clone();
    /// assert_eq!(locks.history(), [Event::Acquired(key.clone()), Event::Lost(key)]);
    /// # Ok(()) }
    /// ```
    pub fn history(&self) -> Vec<Event> {
        self.ours.shared().flush();
        self.history.events()
    }

    /// Lets locks that match the first pattern be taken under locks that match the second one, and
    /// the other way round. Patterns are those of [`LockManager::list`]; two `*` allow every order.
    ///
    /// Otherwise, dropping `Locks` panics if the test asked for each of two locks, with a wait, in
    /// a body under the other one: two such callers can wait for each other, unless both hold the
    /// same third lock exclusively. Readers can too, since a reader waits behind a waiting writer.
    ///
    /// ```should_panic
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// use lock_runtime::testing::Locks;
    ///
    /// let locks = Locks::new();
    /// for [outer, inner] in [["a", "b"], ["b", "a"]] {
    ///     let inner = locks.manager().lock(inner).acquire();
    ///     locks.manager().lock(outer).run(async |_| inner.await.map(drop)).await??;
    /// }
    /// // locks.allow_both_orders("a", "b");
    /// # Ok(()) }
    /// ```
    pub fn allow_both_orders(&self, one: &str, other: &str) {
        let pair = [one, other].map(Pattern::new);
        self.history.allow_both_orders(pair);
    }

    /// Whether this manager holds a lock: lets a fake check that it is called under the right
    /// lock. [`LockManager::status`] covers all holders.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// use lock_runtime::testing::Locks;
    ///
    /// let locks = Locks::new();
    /// let guard = locks.manager().lock("stock:lamp").acquire().await?;
    /// assert!(locks.is_held("stock:lamp") && !locks.is_held("stock:desk"));
    /// drop(guard);
    /// assert!(!locks.is_held("stock:lamp"));
    /// # Ok(()) }
    /// ```
    pub fn is_held(&self, key: impl IntoKey) -> bool {
        self.ours.shared().flush();
        let key = key.into_key();
        key.is_ok_and(|key| self.history.is_held(&key))
    }
}

impl Drop for Locks {
    /// # Panics
    ///
    /// If two locks were taken [in both orders](Self::allow_both_orders), unless the test panics already.
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        if let Some(inversion) = self.history.inversion() {
            panic!("{inversion}");
        }
    }
}

fn manager(store: Box<dyn Backend>, clock: &Clock) -> LockManager {
    let config = LockConfig::new("memory:").expect("the URL is valid");
    let config = config.clock(clock.clone());
    let mailbox = driver::spawn(store, clock.clone(), config.limits());
    LockManager::new(config, mailbox)
}

impl AsRef<LockManager> for Locks {
    fn as_ref(&self) -> &LockManager {
        &self.ours
    }
}

impl fmt::Debug for Locks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Locks")
            .field("manager", &self.ours)
            .field("history", &self.history.events())
            .finish_non_exhaustive()
    }
}
