//! The handle to one lock store: connects, makes requests, sends queries.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use tokio::sync::oneshot;

use crate::api::config::LockConfig;
use crate::api::election::Election;
use crate::api::graph;
use crate::api::request::LockRequest;
use crate::api::shared::Shared;
use crate::backend::capabilities::Capabilities;
use crate::base::block_on::block_on;
use crate::driver::{self, Mailbox, Op};
use crate::telemetry::events;
use crate::types::answer::Reply;
use crate::types::error::{Cause, LockError};
use crate::types::finding::{Finding, Severity};
use crate::types::graph::Graph;
use crate::types::health::{Health, LastError};
use crate::types::history::Grant;
use crate::types::holder::Status;
use crate::types::into_key::IntoKey;
use crate::types::key::LockKey;
use crate::types::keys::Keys;
use crate::types::overview::Overview;
use crate::types::query::{Pattern, Query};
use crate::types::ticket::Ticket;

/// A handle to one lock store. A background thread renews its leases.
///
/// Cheap to clone. Works from any thread, any async runtime, and none.
///
/// Dropping the last handle blocks the calling thread until pending releases are answered, for a
/// second at most, so that a program that then ends leaves no lock behind. Clones,
/// [requests](LockRequest), and [acquisitions](crate::Acquire) without an answer count as handles.
/// [`shutdown`](Self::shutdown) waits without blocking. A guard that is dropped later is released
/// only if the program continues.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), lock_runtime::LockError> {
/// use lock_runtime::LockManager;
///
/// let locks = LockManager::connect("memory:").await?; // or "redis://127.0.0.1:6379"
/// let guard = locks.lock("stock:lamp").acquire().await?;
/// assert!(locks.status("stock:lamp").await?.is_held());
/// guard.release();
/// locks.shutdown().await;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct LockManager {
    shared: Arc<Shared>,
}

impl LockManager {
    /// Connects to the store at a URL or with a [`LockConfig`].
    ///
    /// # Errors
    ///
    /// [`LockError::InvalidOptions`] if the configuration is wrong, or names a database that the
    /// server does not have; [`LockError::Unavailable`] if the server refuses the connection or
    /// cannot be reached within the connect timeout.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// use lock_runtime::{LockConfig, LockManager};
    ///
    /// let locks = LockManager::connect("memory:").await?;
    /// let shop = LockManager::connect(LockConfig::new("memory:")?.prefix("shop")).await?;
    /// assert_eq!((locks.prefix(), shop.prefix()), ("lock", "shop"));
    /// # Ok(()) }
    /// ```
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

    /// The same as [`connect`](Self::connect) for synchronous code: blocks the thread.
    /// [`LockRequest::acquire_blocking`] takes locks then.
    ///
    /// # Errors
    ///
    /// Those of [`connect`](Self::connect).
    ///
    /// ```
    /// use lock_runtime::LockManager;
    ///
    /// let locks = LockManager::connect_blocking("memory:")?;
    /// let guard = locks.lock("stock:lamp").acquire_blocking()?;
    /// # Ok::<_, lock_runtime::LockError>(())
    /// ```
    pub fn connect_blocking<C>(config: C) -> Result<Self, LockError>
    where
        C: TryInto<LockConfig>,
        LockError: From<C::Error>,
    {
        block_on(Self::connect(config))
    }

    pub(crate) fn new(config: LockConfig, mailbox: Arc<Mailbox>) -> Self {
        Self {
            shared: Arc::new(Shared::new(config, mailbox)),
        }
    }

    /// A request for the lock named `key`.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// use std::time::Duration;
    ///
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// let request = locks.lock("stock:lamp").wait(Duration::from_secs(2));
    /// let guard = request.acquire().await?;
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn lock(&self, key: impl IntoKey) -> LockRequest {
        self.lock_all([key])
    }

    /// A request for the lock that a [ticket](crate::Ticket) keeps closed. Its guard is a new
    /// acquisition with a larger fencing token. It does not wait in the queue. At most one request
    /// adopts a ticket. The manager needs the same store and prefix as the one that issued the
    /// ticket.
    ///
    /// The request's [`wait`](LockRequest::wait) only limits how long it asks a server that cannot
    /// be reached. The kind is that of the ticket; `take`, `max_waiters` and `reentrant` are
    /// refused with [`LockError::InvalidOptions`].
    ///
    /// The request fails with [`LockError::InvalidTicket`] if the ticket has expired, was adopted
    /// before, or was revoked.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// use std::time::Duration;
    ///
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// let guard = locks.lock("video:7").acquire().await?;
    /// let (before, minute) = (guard.fencing_token(), Duration::from_secs(60));
    /// let ticket = guard.into_ticket(minute).await?;
    /// let guard = locks.adopt(&ticket).ttl(minute).await?;
    /// assert!(guard.fencing_token() > before);
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn adopt(&self, ticket: impl Borrow<Ticket>) -> LockRequest {
        let ticket = ticket.borrow();
        self.lock(&ticket.key).adopting(ticket)
    }

    /// A request for several locks, all or none, regardless of argument order. They are taken in
    /// the order of their names, so that two requests never deadlock. Duplicate names count once.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// let both = locks.lock_all(["account:7", "account:3"]).acquire().await?;
    /// assert_eq!(both.keys().count(), 2);
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn lock_all<K: IntoKey>(&self, keys: impl IntoIterator<Item = K>) -> LockRequest {
        let keys = Keys::new(keys.into_iter().map(IntoKey::into_key));
        LockRequest::new(Arc::clone(&self.shared), keys)
    }

    /// The election with this name: candidates wait for its lock, and the holder leads.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// let leadership = locks.election("reports").candidate("10.0.0.7:80").campaign().await?;
    /// let mut leaders = locks.election("reports").observe()?;
    /// if let Some(leader) = leaders.next().await {
    ///     println!("{} leads, with the fencing token {}", leader.data, leader.fencing_token);
    /// }
    /// leadership.resign();
    /// # Ok(()) }
    /// ```
    pub fn election(&self, name: impl IntoKey) -> Election {
        Election::new(Arc::clone(&self.shared), name.into_key())
    }

    /// Describes a lock: its holders and since when they hold it, its waiters, or its
    /// [cooldown](Status::is_cooling_down).
    ///
    /// # Errors
    ///
    /// [`LockError::InvalidKey`] if `key` is no valid name, [`LockError::Unavailable`] if the
    /// server cannot be reached or refuses to serve, [`LockError::ShutDown`] after a shutdown.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// let request = locks.lock("stock:lamp").function("shop::restock");
    /// let _guard = request.acquire().await?;
    /// let status = locks.status("stock:lamp").await?;
    /// assert!(status.is_held() && status.waiting == 0);
    /// assert_eq!(status.holders[0].function.as_deref(), Some("shop::restock"));
    /// # Ok(()) }
    /// ```
    pub async fn status(&self, key: impl IntoKey) -> Result<Status, LockError> {
        let key = key.into_key()?;
        self.query(|reply| Query::Status(key, reply)).await
    }

    /// Lists held and [cooling](Status::is_cooling_down) locks whose names match a pattern, in
    /// which `*` stands for any text and `?` for any character. The server is searched in steps
    /// that block nobody: locks that are taken or released meanwhile may or may not be listed.
    ///
    /// # Errors
    ///
    /// [`LockError::Unavailable`] if the server cannot be reached or refuses to serve,
    /// [`LockError::ShutDown`] after a shutdown, [`LockError::InvalidOptions`] on a store without
    /// [`Capabilities::list`](crate::Capabilities::list).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// let _guard = locks.lock_all(["stock:lamp", "stock:desk", "order:7"]).acquire().await?;
    /// assert_eq!(locks.list("stock:*").await?, ["stock:desk", "stock:lamp"]);
    /// # Ok(()) }
    /// ```
    pub async fn list(&self, pattern: &str) -> Result<Vec<LockKey>, LockError> {
        if !self.shared.capabilities.list {
            return Err(self.shared.capabilities.lacks("list"));
        }
        let pattern = Pattern::new(pattern);
        self.query(|reply| Query::List(pattern, reply)).await
    }

    /// Describes the locks with holders or waiters that match a pattern, as in
    /// [`list`](Self::list). The server is searched in steps that block nobody, so changes
    /// meanwhile may be missing. [`Overview::changes_since`] compares two overviews, and shows the
    /// changes of all clients.
    ///
    /// # Errors
    ///
    /// [`LockError::Unavailable`] if the server, or a master of a cluster, cannot be reached or
    /// refuses to serve, [`LockError::ShutDown`] after a shutdown, [`LockError::InvalidOptions`] on a
    /// store without [`Capabilities::list`](crate::Capabilities::list).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// let before = locks.overview("stock:*").await?;
    /// let _guard = locks.lock("stock:lamp").acquire().await?;
    /// let now = locks.overview("stock:*").await?;
    /// assert_eq!(now.locks[0].held_by, 1);
    /// for change in now.changes_since(&before) {
    ///     println!("{} was {}: {}", change.key, change.kind, change.holder);
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn overview(&self, pattern: &str) -> Result<Overview, LockError> {
        if !self.shared.capabilities.list {
            return Err(self.shared.capabilities.lacks("overview"));
        }
        let pattern = Pattern::new(pattern);
        let overview = self.query(|reply| Query::Overview(pattern, reply)).await?;
        match overview.unanswered.last() {
            Some(said) => Err(self.shared.unavailable(Cause::from(Box::from(&**said)))),
            None => Ok(overview),
        }
    }

    /// Which callers wait for a lock while they hold another one, and which of them wait for each
    /// other. All locks are looked at twice, and only waits that were seen both times are returned,
    /// so a cycle is real. Waits that have just begun or ended are missing.
    ///
    /// A caller is known if it asks for the second lock in the body under the first one, with the
    /// same manager: see [`Waiter::holds`](crate::inspect::Waiter::holds). Waits of spawned tasks,
    /// and of code that keeps a guard without [`hold`](crate::LockGuard::hold), are missing. On
    /// PostgreSQL, so are waiters that follow a holder of their own process. Of a cluster, [the
    /// masters that do not answer](Graph::unanswered) are named, as long as one answers.
    ///
    /// # Errors
    ///
    /// [`LockError::InvalidOptions`] if the store does not know it, [`LockError::Unavailable`] if the
    /// server cannot be reached or refuses to serve, [`LockError::ShutDown`] after a shutdown.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// for cycle in locks.graph().await?.cycles {
    ///     eprintln!("deadlock: {cycle}");
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn graph(&self) -> Result<Graph, LockError> {
        if !self.shared.capabilities.graph {
            return Err(self.shared.capabilities.lacks_graph());
        }
        graph::graph(&self.shared).await
    }

    /// Checks the assumptions of the promises on this store: the version of the server, its
    /// persistence and eviction, missing rights, the round trip, and so on. Takes no lock. Some
    /// checks need more rights than locks do; checks that are skipped for lack of permission are
    /// reported as a [`Notice`](Severity::Notice).
    ///
    /// # Errors
    ///
    /// [`LockError::Unavailable`] if the server cannot be reached or refuses to serve,
    /// [`LockError::ShutDown`] after a shutdown.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// use lock_runtime::inspect::Severity;
    ///
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// for finding in locks.diagnose().await? {
    ///     if finding.severity >= Severity::Warning {
    ///         println!("{}: {}", finding.check, finding.found);
    ///     }
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn diagnose(&self) -> Result<Vec<Finding>, LockError> {
        let mut findings = self.query(Query::Diagnose).await?;
        if self.shared.capabilities.list {
            let overview = self.overview("*").await;
            findings.push(found("leases", overview.map(|it| without_end(&it)))?);
        }
        if self.shared.capabilities.graph {
            let graph = self.graph().await;
            findings.push(found("cycles", graph.map(|it| it.finding()))?);
        }
        Ok(findings)
    }

    /// Revokes a lock: removes its holders, foreign clients included, and hands the lock to the
    /// next waiter. Returns the number of removed holders, including those in
    /// [cooldown](Status::is_cooling_down).
    ///
    /// The holders are notified, and their work is stopped. Until the message arrives, they work
    /// beside the next holder, whose fencing token is larger. A holder that cannot be reached
    /// works until its next renewal, or the end of a lease that is not renewed.
    ///
    /// # Errors
    ///
    /// [`LockError::InvalidKey`] if `key` is no valid name, [`LockError::Unavailable`] if the
    /// server cannot be reached or refuses to serve, [`LockError::ShutDown`] after a shutdown,
    /// [`LockError::InvalidOptions`] on a store without
    /// [`Capabilities::force_release`](crate::Capabilities::force_release).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// let guard = locks.lock("nightly").acquire().await?;
    /// assert_eq!(locks.force_release("nightly").await?, 1);
    /// guard.lost().await;
    /// # Ok(()) }
    /// ```
    pub async fn force_release(&self, key: impl IntoKey) -> Result<usize, LockError> {
        if !self.shared.capabilities.force_release {
            return Err(self.shared.capabilities.lacks("force_release"));
        }
        let key = key.into_key()?;
        let released = self
            .query(|reply| Query::ForceRelease(key.clone(), reply))
            .await?;
        if released > 0 {
            events::revoked(&key, released);
        }
        Ok(released)
    }

    /// Asks the holders of a lock to yield: [`LockGuard::asked`](crate::LockGuard::asked) and
    /// [`asked`](crate::asked()) resolve in their processes. Nothing stops their work, and the lock stays
    /// theirs until they release it. Returns how many holders were asked. Those that come later are not.
    ///
    /// On Redis, only holders that acknowledge the message are counted. The call repeats the
    /// message until the leases of the others have ended, for 30 s at most. So the number is
    /// smaller than that of the holders if one of them cannot be reached, is a client of another
    /// kind, or has released the lock meanwhile.
    ///
    /// # Errors
    ///
    /// [`LockError::InvalidKey`] if `key` is no valid name, [`LockError::InvalidOptions`] if the store
    /// cannot, [`LockError::Unavailable`] if the server cannot be reached or the connection breaks
    /// meanwhile, [`LockError::ShutDown`] after a shutdown.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// let guard = locks.lock("indexer").acquire().await?;
    /// assert_eq!(locks.ask("indexer").await?, 1);
    /// guard.asked().await;
    /// assert!(guard.is_held());
    /// # Ok(()) }
    /// ```
    pub async fn ask(&self, key: impl IntoKey) -> Result<usize, LockError> {
        if !self.shared.capabilities.ask {
            return Err(self.shared.capabilities.lacks("ask"));
        }
        let key = key.into_key()?;
        self.query(|reply| Query::Ask(key.clone(), reply)).await
    }

    /// The last grants of a lock, the newest first: who held it, from when to when, and how that
    /// ended. The store remembers those of managers that are configured to keep a
    /// [`history`](crate::LockConfig::history), and nothing else; any manager of the store can ask.
    ///
    /// # Errors
    ///
    /// [`LockError::InvalidKey`] if `key` cannot be a name, [`LockError::InvalidOptions`] if the
    /// store keeps no history, [`LockError::Unavailable`] if the server cannot be asked at the moment,
    /// [`LockError::ShutDown`] once a shutdown has begun.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// use lock_runtime::LockManager;
    /// use lock_runtime::inspect::GrantEnd;
    ///
    /// let locks = LockManager::connect("memory:?history=20").await?;
    /// locks.lock("nightly").function("shop::report").run(async |_| ()).await?;
    /// let history = locks.history("nightly").await?;
    /// assert_eq!(history[0].function.as_deref(), Some("shop::report"));
    /// assert_eq!(history[0].end, Some(GrantEnd::Released));
    /// # Ok(()) }
    /// ```
    pub async fn history(&self, key: impl IntoKey) -> Result<Vec<Grant>, LockError> {
        if !self.shared.capabilities.history {
            return Err(self.shared.capabilities.lacks("history"));
        }
        let key = key.into_key()?;
        self.query(|reply| Query::History(key, reply)).await
    }

    /// The last grant of a lock, or the one of its holder: when a job ran last, for how long, and
    /// where. `None` if the store remembers none; see [`history`](Self::history).
    ///
    /// # Errors
    ///
    /// As [`history`](Self::history).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let locks = lock_runtime::LockManager::connect("memory:?history=1").await?;
    /// # locks.lock("nightly").run(async |_| ()).await?;
    /// match locks.last("nightly").await? {
    ///     Some(last) => println!("it began at {:?} and {:?}", last.since, last.end),
    ///     None => println!("it has not run for a month"),
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn last(&self, key: impl IntoKey) -> Result<Option<Grant>, LockError> {
        Ok(self.history(key).await?.into_iter().next())
    }

    /// Checks whether the server answers, for a readiness probe. Successive calls check a broken
    /// connection, or else each in turn. The answer takes about a second at most, and is never an
    /// error: if the server cannot be reached, or the manager was shut down,
    /// [`connected`](Health::connected) is false.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// let health = locks.health().await;
    /// let status = if health.grants { 200 } else { 503 };
    /// println!("{status}: {} of {} servers answer", health.reachable, health.servers);
    /// # Ok(()) }
    /// ```
    pub async fn health(&self) -> Health {
        let unreachable = |error| Health::unreachable(LastError::now(&error));
        self.query(Query::Health).await.unwrap_or_else(unreachable)
    }

    async fn query<T>(&self, query: impl FnOnce(Reply<T>) -> Query) -> Result<T, LockError> {
        self.shared.query(query).await
    }

    /// The store as errors name it, without a password: `Redis at 127.0.0.1:6379`.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// println!("locks of {}", locks.server());
    /// # Ok(()) }
    /// ```
    pub fn server(&self) -> &str {
        &self.shared.mailbox.server
    }

    /// The prefix of all keys in the store.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// use lock_runtime::LockManager;
    ///
    /// let locks = LockManager::connect("memory:?prefix=shop").await?;
    /// assert_eq!(locks.prefix(), "shop");
    /// # Ok(()) }
    /// ```
    pub fn prefix(&self) -> &str {
        &self.shared.config.prefix
    }

    /// The abilities of this store.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// assert!(locks.capabilities().permits);
    /// # Ok(()) }
    /// ```
    pub fn capabilities(&self) -> &Capabilities {
        &self.shared.capabilities
    }

    /// Takes no new locks and rejects queries. Locked work continues, with renewals, for the grace
    /// time of the configuration; then it is stopped. Returns when every release has been
    /// answered, or its lease would have ended.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// # let locks = lock_runtime::LockManager::connect("memory:").await?;
    /// # let shop = async {};
    /// shop.await; // the service, until it is asked to stop
    /// locks.shutdown().await;
    /// # Ok(()) }
    /// ```
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

/// What a check has found. One that the server refuses, or does not answer, is a finding beside the others.
fn found(check: &'static str, finding: Result<Finding, LockError>) -> Result<Finding, LockError> {
    match finding {
        Err(error @ LockError::Unavailable { .. }) => {
            let unknown = Finding::fine(check, format!("could not be checked: {error}"));
            Ok(unknown.but(
                Severity::Warning,
                "what this check would have found is not known",
                "remove the cause, and run the checks again",
            ))
        }
        finding => finding,
    }
}

/// Whether held locks have no lease that ends.
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
