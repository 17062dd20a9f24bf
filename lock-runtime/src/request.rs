//! What one acquisition asks for, and the future that waits for its answer.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::sync::oneshot;

use crate::config;
use crate::current;
use crate::driver::Op;
use crate::error::LockError;
use crate::guard::LockGuard;
use crate::key::LockKey;
use crate::manager::{LockManager, Shared};
use crate::site::Site;

/// Names an acquisition, and the lease that comes of it, within one manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct LeaseId(pub(crate) u64);

/// How long to wait for a held lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Zero tries once.
    AtMost(Duration),
    Forever,
}

impl Wait {
    pub(crate) fn is_try(self) -> bool {
        self == Self::AtMost(Duration::ZERO)
    }
}

/// Everything that is settled when an acquisition begins.
#[derive(Debug)]
pub(crate) struct Terms {
    pub(crate) id: LeaseId,
    pub(crate) key: LockKey,
    pub(crate) ttl: Duration,
    pub(crate) wait: Wait,
    pub(crate) renew: bool,
    /// Module and name of the annotated function, where there is one.
    pub(crate) function: Option<(&'static str, &'static str)>,
}

impl Terms {
    /// How long the server may be silent on a call before its connection counts
    /// as broken: short enough for a lease to be renewed over the next one, long
    /// enough for a busy machine.
    pub(crate) fn call_timeout(&self) -> Duration {
        (self.ttl / 4).clamp(Duration::from_millis(100), Duration::from_secs(1))
    }
}

/// An acquisition that can still be shaped; made by
/// [`LockManager::lock`](crate::LockManager::lock).
#[must_use = "nothing is locked before `acquire` or `run`"]
pub struct LockRequest {
    shared: Arc<Shared>,
    key: LockKey,
    ttl: Option<Duration>,
    wait: Option<Wait>,
    renew: bool,
}

impl LockRequest {
    pub(crate) fn new(shared: Arc<Shared>, key: LockKey) -> Self {
        Self {
            shared,
            key,
            ttl: None,
            wait: None,
            renew: true,
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

    /// Takes the lock. Dropping the future gives it up: no key and no place in
    /// a queue are left behind.
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
        let shared = Arc::clone(&self.shared);
        let stage = match self.terms() {
            Ok(terms) => Stage::Unasked {
                shared,
                terms: Arc::new(terms),
            },
            Err(error) => Stage::Refused(error),
        };
        Acquire { stage }
    }

    /// Takes the lock, runs `body` under it, and releases it.
    ///
    /// # Errors
    ///
    /// Those of [`acquire`](Self::acquire), and [`LockError::Lost`] where the
    /// lease ended while the body ran, which has been dropped then.
    pub async fn run<T>(self, body: impl AsyncFnOnce(&LockGuard) -> T) -> Result<T, LockError> {
        let guard = self.acquire().await?;
        guard.hold(body(&guard)).await
    }

    fn terms(self) -> Result<Terms, LockError> {
        self.key.check()?;
        let config = &self.shared.config;
        let ttl = self.ttl.unwrap_or(config.ttl);
        config::check_ttl(ttl)?;
        Ok(Terms {
            id: self.shared.next_id(),
            key: self.key,
            ttl,
            wait: self.wait.unwrap_or(config.wait),
            renew: self.renew,
            function: None,
        })
    }
}

impl fmt::Debug for LockRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockRequest")
            .field("key", &self.key)
            .field("ttl", &self.ttl)
            .field("wait", &self.wait)
            .field("renew", &self.renew)
            .finish_non_exhaustive()
    }
}

/// The future of an acquisition; see [`LockRequest::acquire`].
#[must_use = "futures do nothing unless polled"]
pub struct Acquire {
    stage: Stage,
}

enum Stage {
    Refused(LockError),
    Unasked {
        shared: Arc<Shared>,
        terms: Arc<Terms>,
    },
    Asked {
        shared: Arc<Shared>,
        id: LeaseId,
        answer: oneshot::Receiver<Result<LockGuard, LockError>>,
    },
    Answered,
}

impl Acquire {
    /// As an annotated function takes its lock.
    pub(crate) fn at_site(
        manager: Result<LockManager, LockError>,
        site: &'static Site,
        key: LockKey,
    ) -> Self {
        let stage = match manager.and_then(|manager| Self::site_terms(&manager, site, key)) {
            Ok((shared, terms)) => Stage::Unasked { shared, terms },
            Err(error) => Stage::Refused(error),
        };
        Self { stage }
    }

    fn site_terms(
        manager: &LockManager,
        site: &'static Site,
        key: LockKey,
    ) -> Result<(Arc<Shared>, Arc<Terms>), LockError> {
        key.check()?;
        let shared = manager.shared();
        let terms = Terms {
            id: shared.next_id(),
            key,
            ttl: site.ttl.unwrap_or(shared.config.ttl),
            wait: site.wait.unwrap_or(shared.config.wait),
            renew: site.renew,
            function: Some((site.module, site.function)),
        };
        Ok((Arc::clone(shared), Arc::new(terms)))
    }
}

impl Future for Acquire {
    type Output = Result<LockGuard, LockError>;

    /// # Panics
    ///
    /// Where it is polled again after it has returned, as async functions do.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Stage::Unasked { shared, terms } = &self.stage {
            if current::holds(shared, &terms.key) {
                let key = terms.key.clone();
                self.stage = Stage::Answered;
                return Poll::Ready(Err(LockError::AlreadyHeld { key }));
            }
            let (reply, answer) = oneshot::channel();
            let (shared, terms) = (Arc::clone(shared), Arc::clone(terms));
            let id = terms.id;
            // A mailbox that is closed drops the reply, which is an answer.
            let _ = shared.mailbox.send(Op::Acquire { terms, reply });
            self.stage = Stage::Asked { shared, id, answer };
        }
        let answer = match &mut self.stage {
            Stage::Asked { answer, .. } => ready!(Pin::new(answer).poll(cx)),
            stage => match std::mem::replace(stage, Stage::Answered) {
                Stage::Refused(error) => Ok(Err(error)),
                _ => panic!("`Acquire` was polled after it had returned"),
            },
        };
        self.stage = Stage::Answered;
        Poll::Ready(answer.unwrap_or(Err(LockError::ShutDown)))
    }
}

impl Drop for Acquire {
    fn drop(&mut self) {
        // A guard that was answered meanwhile is dropped with the receiver,
        // which releases it.
        if let Stage::Asked { shared, id, .. } = &self.stage {
            let _ = shared.mailbox.send(Op::Cancel(*id));
        }
    }
}

impl fmt::Debug for Acquire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.stage {
            Stage::Refused(_) => "Acquire(refused)",
            Stage::Unasked { .. } => "Acquire(not asked yet)",
            Stage::Asked { .. } => "Acquire(asked)",
            Stage::Answered => "Acquire(answered)",
        })
    }
}
