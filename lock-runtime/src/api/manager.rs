//! The handle to one set of locks: connects, makes requests, answers questions.

use std::fmt;
use std::sync::Arc;

use tokio::sync::oneshot;

use crate::api::config::LockConfig;
use crate::api::request::LockRequest;
use crate::api::shared::Shared;
use crate::backend::capabilities::Capabilities;
use crate::driver::{self, Mailbox, Op};
use crate::types::answer::Reply;
use crate::types::error::LockError;
use crate::types::finding::{Finding, Severity};
use crate::types::health::{Health, LastError};
use crate::types::holder::Status;
use crate::types::into_key::IntoKey;
use crate::types::key::LockKey;
use crate::types::keys::Keys;
use crate::types::overview::Overview;
use crate::types::query::{Pattern, Query};

/// A set of locks: one store, one thread that keeps the leases.
///
/// Cheap to clone. Works from any thread, any async runtime, and none.
///
/// Dropping the last handle waits for the releases that are in flight, for a second
/// at most, so that a program that ends then leaves no lock behind. Handles are the
/// clones, and the [requests](LockRequest) and [acquisitions](crate::Acquire) that have no
/// answer yet. It blocks its thread meanwhile; [`shutdown`](Self::shutdown) waits
/// without blocking. A guard that is dropped later is released only if the program goes
/// on.
#[derive(Clone)]
pub struct LockManager {
    shared: Arc<Shared>,
}

impl LockManager {
    /// Connects to the locks at a URL or with a [`LockConfig`].
    ///
    /// # Errors
    ///
    /// [`LockError::InvalidOptions`] if the configuration is wrong, or names a
    /// database that the server does not have; [`LockError::Unavailable`] if the
    /// server refuses the connection or cannot be reached within the connect timeout.
    pub async fn connect<C>(config: C) -> Result<Self, LockError>
    where
        C: TryInto<LockConfig>,
        LockError: From<C::Error>,
    {
        let config = config.try_into()?;
        config.validate()?;
        let target = Arc::clone(&config.target);
        let mailbox = driver::start(target, config.setup(), config.limits()).await?;
        Ok(Self::new(config, mailbox))
    }

    pub(crate) fn new(config: LockConfig, mailbox: Arc<Mailbox>) -> Self {
        Self {
            shared: Arc::new(Shared::new(config, mailbox)),
        }
    }

    /// A request for the lock named `key`.
    #[track_caller]
    pub fn lock(&self, key: impl IntoKey) -> LockRequest {
        self.lock_all([key])
    }

    /// A request for several locks, all or none. They are taken in the order of
    /// their names, whatever the order here, so that two requests never wait for
    /// each other; a name that is given twice counts once.
    #[track_caller]
    pub fn lock_all<K: IntoKey>(&self, keys: impl IntoIterator<Item = K>) -> LockRequest {
        let keys = Keys::new(keys.into_iter().map(IntoKey::into_key));
        LockRequest::new(Arc::clone(&self.shared), keys)
    }

    /// Who holds a lock, since when, and how many wait for it; or whose release
    /// left it [cooling down](Status::is_cooling_down).
    ///
    /// # Errors
    ///
    /// [`LockError::InvalidKey`] if `key` cannot be a name,
    /// [`LockError::Unavailable`] if the server cannot be asked at the moment,
    /// [`LockError::ShutDown`] once a shutdown has begun.
    pub async fn status(&self, key: impl IntoKey) -> Result<Status, LockError> {
        let key = key.into_key()?;
        self.ask(|reply| Query::Status(key, reply)).await
    }

    /// The names of the locks that are held or [cool down](Status::is_cooling_down), and match
    /// a pattern, in which `*` stands for any text and `?` for any character. The
    /// server is searched in steps that block nobody, so locks that are taken or
    /// released meanwhile may be missing or listed.
    ///
    /// # Errors
    ///
    /// [`LockError::Unavailable`] if the server cannot be asked at the moment,
    /// [`LockError::ShutDown`] once a shutdown has begun.
    pub async fn list(&self, pattern: &str) -> Result<Vec<LockKey>, LockError> {
        if !self.shared.capabilities.list {
            return Err(self.shared.capabilities.lacks("list"));
        }
        let pattern = Pattern::new(pattern);
        self.ask(|reply| Query::List(pattern, reply)).await
    }

    /// The locks that are held or waited for and match a pattern, as in
    /// [`list`](Self::list), with their holders and how many wait. The server is searched
    /// in steps that block nobody, so what happens meanwhile may be seen or not. Two
    /// overviews tell [what has happened](Overview::changes_since) between them, to all
    /// clients of the store.
    ///
    /// # Errors
    ///
    /// [`LockError::Unavailable`] if the server cannot be asked at the moment,
    /// [`LockError::ShutDown`] once a shutdown has begun.
    pub async fn overview(&self, pattern: &str) -> Result<Overview, LockError> {
        if !self.shared.capabilities.list {
            return Err(self.shared.capabilities.lacks("overview"));
        }
        let pattern = Pattern::new(pattern);
        self.ask(|reply| Query::Overview(pattern, reply)).await
    }

    /// What the promises of the locks depend on in this store, and how it stands: the
    /// version of the server, what it forgets and when, which rights are missing, how far
    /// away it is, and so on. Takes no lock. Some questions need more rights than locks do,
    /// and what cannot be asked is a [`Notice`](Severity::Notice).
    ///
    /// # Errors
    ///
    /// [`LockError::Unavailable`] if the server cannot be asked at the moment,
    /// [`LockError::ShutDown`] once a shutdown has begun.
    pub async fn diagnose(&self) -> Result<Vec<Finding>, LockError> {
        let mut findings = self.ask(Query::Diagnose).await?;
        if self.shared.capabilities.list {
            findings.push(without_end(&self.overview("*").await?));
        }
        Ok(findings)
    }

    /// Revokes a lock: takes it away from its holders by force, foreign clients included,
    /// and hands it to the next waiter. Returns how many held it, including those whose
    /// release left it [cooling down](Status::is_cooling_down). Holders that can be
    /// reached are notified, and their work is stopped. Until the message arrives they
    /// work on beside the next holder, whose fencing token is larger; holders that cannot
    /// be reached do so until their next renewal, or the end of a lease that is not renewed.
    ///
    /// # Errors
    ///
    /// [`LockError::InvalidKey`] if `key` cannot be a name,
    /// [`LockError::Unavailable`] if the server cannot be asked at the moment,
    /// [`LockError::ShutDown`] once a shutdown has begun.
    pub async fn force_release(&self, key: impl IntoKey) -> Result<usize, LockError> {
        if !self.shared.capabilities.force_release {
            return Err(self.shared.capabilities.lacks("force_release"));
        }
        let key = key.into_key()?;
        self.ask(|reply| Query::ForceRelease(key, reply)).await
    }

    /// Whether the server answers, for a readiness probe. It is asked over one of the
    /// connections, in turn, or over one that is broken. The answer takes about a
    /// second at the most, and is never an error: a server that cannot be reached, and
    /// a manager that was shut down, are not [`connected`](Health::connected).
    pub async fn health(&self) -> Health {
        let unreachable = |error| Health::unreachable(LastError::now(&error));
        self.ask(Query::Health).await.unwrap_or_else(unreachable)
    }

    async fn ask<T>(&self, query: impl FnOnce(Reply<T>) -> Query) -> Result<T, LockError> {
        let mailbox = &self.shared.mailbox;
        let (reply, answered) = oneshot::channel();
        let _ = mailbox.send(Op::Query(query(reply)));
        let answer = answered.await.map_err(|_| LockError::ShutDown)?;
        answer.map_err(|cause| LockError::unavailable_at(&mailbox.server, cause))
    }

    /// What the locks of this store can do.
    pub fn capabilities(&self) -> &Capabilities {
        &self.shared.capabilities
    }

    /// Takes no new locks and answers no more questions. Locked work goes on and is
    /// renewed for the grace time of the configuration, then it is stopped. Returns
    /// when every release has been answered, or its lease would have ended.
    pub async fn shutdown(&self) {
        let (answer, done) = oneshot::channel();
        if self.shared.mailbox.send(Op::ShutDown(answer)).is_ok() {
            let _ = done.await;
        }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
}

/// Whether locks are held that no lease ever ends.
fn without_end(overview: &Overview) -> Finding {
    let lasting = overview.locks.iter().filter(|lock| {
        let mut holders = lock.holders.iter();
        holders.any(|it| it.remaining.is_none())
    });
    let names: Vec<_> = lasting.map(|lock| lock.key.as_str()).collect();
    let Some(first) = names.first() else {
        return Finding::fine("leases", "every held lock has an end");
    };
    Finding::fine(
        "leases",
        format!("{} without an end, `{first}` is one", names.len()),
    )
    .but(
        Severity::Warning,
        "another client has taken them without a lease: if it crashes they stay taken for ever",
        "let that client set a ttl; a release by force frees one",
    )
}

impl fmt::Debug for LockManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockManager")
            .field("config", &self.shared.config)
            .finish_non_exhaustive()
    }
}
