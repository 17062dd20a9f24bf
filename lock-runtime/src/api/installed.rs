//! The manager of annotated functions: that of their scope, else the installed one.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use once_cell::sync::OnceCell;
use pin_project_lite::pin_project;

use crate::api::config::LockConfig;
use crate::api::manager::LockManager;
use crate::types::error::LockError;

static INSTALLED: OnceCell<LockManager> = OnceCell::new();

thread_local! {
    static SCOPE: RefCell<Option<LockManager>> = const { RefCell::new(None) };
}

impl LockManager {
    /// Installs this manager for annotated functions.
    ///
    /// # Errors
    ///
    /// [`LockError::AlreadyInstalled`] if one has been installed before.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// use lock_runtime::{LockManager, distributed_lock};
    ///
    /// #[distributed_lock(key = "nightly")]
    /// async fn nightly() -> Result<(), lock_runtime::LockError> {
    ///     Ok(())
    /// }
    ///
    /// let locks = LockManager::connect("memory:").await?;
    /// locks.install()?;
    /// nightly().await?;
    /// # Ok(()) }
    /// ```
    pub fn install(&self) -> Result<(), LockError> {
        let installed = INSTALLED.set(self.clone());
        installed.map_err(|_| LockError::AlreadyInstalled)
    }

    /// Runs `future` with this manager in place of the installed one. Tasks that the
    /// future spawns are not affected.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// use lock_runtime::{LockError, LockManager, distributed_lock};
    ///
    /// #[distributed_lock(key = "nightly")]
    /// async fn nightly() -> Result<u8, LockError> {
    ///     Ok(7)
    /// }
    ///
    /// let locks = LockManager::connect("memory:").await?;
    /// assert_eq!(locks.scope(nightly()).await?, 7);
    /// # Ok(()) }
    /// ```
    pub fn scope<F: Future>(&self, future: F) -> Scope<F> {
        Scope {
            manager: self.clone(),
            future,
        }
    }

    /// The manager of the current scope, else the installed one.
    pub(crate) fn current() -> Result<Self, LockError> {
        // A destructor of a thread that ends may find that it is gone.
        let scoped = SCOPE.try_with(|scope| scope.borrow().clone());
        scoped
            .unwrap_or_default()
            .or_else(|| INSTALLED.get().cloned())
            .ok_or(LockError::NotConfigured)
    }
}

/// Connects, and installs the manager for annotated functions. Keep the value until the end of
/// `main`: its drop waits up to a second for pending releases, so that the last lock of a program
/// does not stay on the server until its ttl.
///
/// # Errors
///
/// Those of [`LockManager::connect`] and [`LockManager::install`].
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), lock_runtime::LockError> {
/// let installed = lock_runtime::init("memory:").await?; // or LockConfig::from_env()?
/// let guard = installed.manager().lock("stock:lamp").acquire().await?;
/// # Ok(()) }
/// ```
pub async fn init<C>(config: C) -> Result<Installed, LockError>
where
    C: TryInto<LockConfig>,
    LockError: From<C::Error>,
{
    let manager = LockManager::connect(config).await?;
    manager.install()?;
    Ok(Installed { manager })
}

/// Shuts the installed manager down; see [`LockManager::shutdown`]. Does nothing if none is
/// installed.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), lock_runtime::LockError> {
/// let _locks = lock_runtime::init("memory:").await?;
/// // … until the program is asked to stop
/// lock_runtime::shutdown().await;
/// # Ok(()) }
/// ```
pub async fn shutdown() {
    if let Some(manager) = INSTALLED.get() {
        manager.shutdown().await;
    }
}

/// The manager that [`init`] has installed.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), lock_runtime::LockError> {
/// let installed = lock_runtime::init("memory:").await?;
/// println!("locks of {}", installed.manager().server());
/// drop(installed); // at the end of `main`
/// # Ok(()) }
/// ```
#[must_use = "keep it until the end of `main`: dropping it delivers the last releases"]
#[derive(Debug)]
pub struct Installed {
    manager: LockManager,
}

impl Installed {
    /// The manager itself; a clone of it outlives this value.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// let installed = lock_runtime::init("memory:").await?;
    /// let guard = installed.manager().lock("stock:lamp").acquire().await?;
    /// # Ok(()) }
    /// ```
    pub fn manager(&self) -> &LockManager {
        &self.manager
    }
}

impl AsRef<LockManager> for Installed {
    fn as_ref(&self) -> &LockManager {
        &self.manager
    }
}

impl Drop for Installed {
    fn drop(&mut self) {
        self.manager.shared().flush();
    }
}

pin_project! {
    /// The future of [`LockManager::scope`].
    #[must_use = "futures do nothing unless polled"]
    #[derive(Debug)]
    pub struct Scope<F> {
        manager: LockManager,
        #[pin]
        future: F,
    }
}

impl<F: Future> Future for Scope<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        /// Restores the outer scope, also if the future panics.
        struct Restore(Option<LockManager>);
        impl Drop for Restore {
            fn drop(&mut self) {
                SCOPE.set(self.0.take());
            }
        }

        let this = self.project();
        let _restore = Restore(SCOPE.replace(Some(this.manager.clone())));
        this.future.poll(cx)
    }
}
