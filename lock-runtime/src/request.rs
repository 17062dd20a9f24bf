//! What one acquisition asks for, while it can still be shaped.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::acquire::Acquire;
use crate::config;
use crate::error::LockError;
use crate::guard::LockGuard;
use crate::key::{Keys, LockKey};
use crate::manager::Shared;
use crate::terms::{Kind, Terms, Wait};

/// An acquisition that can still be shaped; made by
/// [`LockManager::lock`](crate::LockManager::lock) and
/// [`lock_all`](crate::LockManager::lock_all).
#[must_use = "nothing is locked before `acquire` or `run`"]
pub struct LockRequest {
    shared: Arc<Shared>,
    keys: Option<Keys>,
    ttl: Option<Duration>,
    wait: Option<Wait>,
    renew: bool,
    kind: Kind,
    reentrant: bool,
    min_hold: Option<Duration>,
    max_hold: Option<Duration>,
}

impl LockRequest {
    /// Without a key it is refused.
    pub(crate) fn new(shared: Arc<Shared>, keys: Option<Keys>) -> Self {
        Self {
            shared,
            keys,
            ttl: None,
            wait: None,
            renew: true,
            kind: Kind::Exclusive,
            reentrant: false,
            min_hold: None,
            max_hold: None,
        }
    }

    /// The lease: how long the lock survives a crash of its holder.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// How long to wait for a held lock; zero tries once.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = Some(Wait::AtMost(wait));
        self
    }

    /// Waits for as long as it takes.
    pub fn wait_forever(mut self) -> Self {
        self.wait = Some(Wait::Forever);
        self
    }

    /// `false`: the lease is not renewed and ends after its ttl.
    pub fn renew(mut self, renew: bool) -> Self {
        self.renew = renew;
        self
    }

    /// Shares the lock with other readers. Readers and writers are served in the
    /// order in which they came.
    pub fn read(mut self) -> Self {
        self.kind = Kind::Read;
        self
    }

    /// Takes the lock alone, which is what a request does that asks for nothing
    /// else.
    pub fn write(mut self) -> Self {
        self.kind = Kind::Exclusive;
        self
    }

    /// Shares the lock among at most so many holders. The number counts until
    /// nobody holds the lock: meanwhile another one is refused with
    /// [`LockError::InvalidOptions`].
    pub fn permits(mut self, permits: u32) -> Self {
        self.kind = Kind::Permits(permits);
        self
    }

    /// Joins the lock where the work that asks for it runs under it already,
    /// instead of failing with [`LockError::AlreadyHeld`]. The guard is another
    /// one for the same lease, which ends with the first one. Who holds the
    /// lock as a reader cannot join as a writer.
    pub fn reentrant(mut self) -> Self {
        self.reentrant = true;
        self
    }

    /// Keeps the lock closed until so long after the grant, also when it is
    /// released before: for work that must not run twice in a row. Nobody waits
    /// for that here; a crash frees the lock after its ttl all the same. At most
    /// 24 h.
    pub fn min_hold(mut self, time: Duration) -> Self {
        self.min_hold = Some(time);
        self
    }

    /// Ends the lease at the latest so long after the grant, and with it the
    /// work under it. At most 24 h. Of several keys each counts from its own
    /// grant, as a fixed lease does: choose it longer than the wait for the others.
    pub fn max_hold(mut self, time: Duration) -> Self {
        self.max_hold = Some(time);
        self
    }

    /// Takes the lock; of several keys all or none. Dropping the future gives
    /// it up: no key and no place in a queue are left behind.
    ///
    /// # Errors
    ///
    /// [`LockError::Contended`] where the lock stayed held,
    /// [`LockError::Unavailable`] where the server could not be asked,
    /// [`LockError::InvalidKey`] and [`LockError::InvalidOptions`] where the
    /// request makes no sense, [`LockError::AlreadyHeld`] under
    /// [`hold`](LockGuard::hold) of the same lock, [`LockError::ShutDown`] after a
    /// shutdown.
    pub fn acquire(self) -> Acquire {
        let (shared, reentrant) = (Arc::clone(&self.shared), self.reentrant);
        match self.terms() {
            Ok((terms, rest)) => Acquire::new(shared, terms, rest, reentrant),
            Err(error) => Acquire::refused(error),
        }
    }

    /// Takes the lock, runs `body` under it, and releases it.
    ///
    /// # Errors
    ///
    /// Those of [`acquire`](Self::acquire), and [`LockError::Lost`] where the
    /// lease ended while the body ran, which has been dropped then.
    pub async fn run<T>(self, body: impl AsyncFnOnce(&LockGuard) -> T) -> Result<T, LockError> {
        let guard = self.acquire().await?;
        let output = guard.hold(body(&guard)).await?;
        guard.release();
        Ok(output)
    }

    /// The terms of the first key, and the other keys.
    fn terms(self) -> Result<(Terms, Vec<LockKey>), LockError> {
        let keys = self.keys.ok_or(LockError::InvalidKey {
            reason: "there is none: name at least one",
        })?;
        keys.check()?;
        let config = &self.shared.config;
        let ttl = self.ttl.unwrap_or(config.ttl);
        config::check_ttl(ttl)?;
        if self.kind == Kind::Permits(0) {
            return Err(LockError::invalid("permits", "it must be at least 1"));
        }
        for (setting, time) in [("min_hold", self.min_hold), ("max_hold", self.max_hold)] {
            if time.is_some_and(|time| time.is_zero() || time > config::MAX_TTL) {
                return Err(LockError::invalid(
                    setting,
                    "it must be more than 0s and at most 24h",
                ));
            }
        }
        if let (Some(least), Some(most)) = (self.min_hold, self.max_hold)
            && least > most
        {
            return Err(LockError::invalid(
                "min_hold",
                format_args!("{least:?} is longer than max_hold, {most:?}"),
            ));
        }
        let terms = Terms {
            id: self.shared.next_id(),
            key: keys.first,
            ttl,
            wait: self.wait.unwrap_or(config.wait),
            renew: self.renew,
            kind: self.kind,
            min_hold: self.min_hold,
            max_hold: self.max_hold,
            function: None,
        };
        Ok((terms, keys.rest))
    }
}

impl fmt::Debug for LockRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockRequest")
            .field("keys", &self.keys)
            .field("ttl", &self.ttl)
            .field("wait", &self.wait)
            .field("renew", &self.renew)
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}
