//! The settings of a manager, checked before it connects.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use crate::api::bounds;
use crate::backend::setup::Setup;
#[cfg(feature = "tls")]
use crate::backend::target::check_tls;
use crate::backend::{Quarantine, Target};
use crate::base::clock::Clock;
use crate::driver::Limits;
use crate::types::credentials::{Credentials, Provider};
use crate::types::error::LockError;
use crate::types::terms::Wait;
#[cfg(feature = "tls")]
use crate::types::tls::Tls;

/// The address of a store, the settings of its manager, and the defaults of acquisitions.
///
/// The scheme of the URL chooses the store:
///
/// | URL | backend |
/// |---|---|
/// | `memory:` | in this process, one store for each manager |
/// | `memory:NAME` | in this process, shared by the managers of that name, which need the same clock |
/// | `redis://[user:password@]host[:port][/db]` | a Redis server, 6.2 or newer, or Valkey |
/// | `rediss://…` | the same, encrypted; needs the feature `tls` |
/// | `redis+unix:///path[?db=1&user=…&pass=…]` | the same over a Unix socket |
/// | `redis+sentinel://[user:password@]host[:port],…/SERVICE[/db]` | the master that sentinels name; `sentinel_user` and `sentinel_password` are for them |
/// | `rediss+sentinel://…` | the same, encrypted; needs the feature `tls` |
/// | `redis+cluster://[user:password@]host[:port],…` | a Redis Cluster, with some of its nodes |
/// | `rediss+cluster://…` | the same, encrypted; needs the feature `tls` |
/// | `etcd://[user:password@]host[:port],…` | a cluster of etcd, 3.4 or newer; needs the feature `etcd` |
/// | `etcds://…` | the same, encrypted; needs the feature `tls` too |
/// | `mysql://[user[:password]@]host[:port],…/database` | a MySQL server, 8.0 or newer, or MariaDB, 10.6 or newer; needs the feature `mysql` |
/// | `postgres://[user[:password]@]host[:port],…[/database]` | a PostgreSQL server, 14 or newer; needs the feature `postgres` |
/// | `zookeeper://[user:password@]host[:port][,host[:port]…][/chroot]` | `ZooKeeper`; needs the feature `zookeeper` |
/// | `zookeepers://…` | the same, encrypted; needs the feature `tls` too |
/// | `redis+redlock://[user:password@]host[:port],…[/db]` | a majority of 3, 5 or 7 independent servers; [`quarantine`](Self::quarantine) is on |
/// | `rediss+redlock://…` | the same, encrypted; needs the feature `tls` |
/// | `redis+setnx://[user:password@]host[:port][/db]` | a Redis server whose locks are shared with clients of the setnx protocol; `stamp` and `offset` say how those write times |
/// | `rediss+setnx://…` | the same, encrypted; needs the feature `tls` |
///
/// `valkey://`, `valkeys://`, `mariadb://` and `postgresql://` mean the same as `redis://`, `rediss://`, `mysql://` and
/// `postgres://`. In the URL, all settings but `clock`, `credentials` and `tls` have the names of their setters, and
/// `wait=forever`, `unavailable_wait=forever` and `lazy=true` stand for the others:
/// `redis://127.0.0.1?ttl=1m+30s&wait=forever`. With [`from_env`](Self::from_env), environment
/// variables such as `LOCK_TTL` override the URL. Setters override both. Durations are written as
/// in the attribute.
///
/// The setters accept any value: [`connect`](crate::LockManager::connect) and
/// [`init`](crate::init()) check them with [`validate`](Self::validate) before they open a
/// connection.
///
/// ```
/// # fn example() -> Result<(), lock_runtime::LockError> {
/// use std::time::Duration;
/// use lock_runtime::LockConfig;
///
/// let config = LockConfig::new("memory:")?
///     .prefix("shop")
///     .ttl(Duration::from_secs(30))
///     .wait_forever();
/// config.validate()?;
/// # Ok(()) }
/// # example().unwrap();
/// ```
#[derive(Clone)]
#[must_use = "a configuration does nothing before `connect` or `init`"]
pub struct LockConfig {
    pub(crate) target: Arc<dyn Target>,
    pub(crate) prefix: Box<str>,
    pub(crate) ttl: Duration,
    pub(crate) wait: Wait,
    pub(crate) max_waiters: Option<u32>,
    pub(crate) unavailable_wait: Wait,
    pub(crate) connect_timeout: Duration,
    pub(crate) lazy: bool,
    pub(crate) shutdown_grace: Duration,
    pub(crate) pool_size: usize,
    pub(crate) history: usize,
    pub(crate) replicas: usize,
    pub(crate) quarantine: Option<Duration>,
    pub(crate) clock: Clock,
    pub(crate) credentials: Option<Provider>,
    #[cfg(feature = "tls")]
    pub(crate) tls: Option<Tls>,
}

impl LockConfig {
    /// The default settings for the locks of a store.
    pub(super) fn at(target: Arc<dyn Target>) -> Self {
        Self {
            target,
            prefix: "lock".into(),
            ttl: Duration::from_secs(10),
            wait: Wait::AtMost(Duration::from_secs(5)),
            max_waiters: None,
            unavailable_wait: Wait::AtMost(Duration::from_secs(2)),
            connect_timeout: Duration::from_secs(5),
            lazy: false,
            shutdown_grace: Duration::from_secs(30),
            pool_size: 1,
            history: 0,
            replicas: 0,
            quarantine: None,
            clock: Clock::machine(),
            credentials: None,
            #[cfg(feature = "tls")]
            tls: None,
        }
    }

    /// The prefix of all keys on the server, `lock` by default: locks with different prefixes are
    /// different locks. 1 to 128 bytes, without braces and control characters.
    ///
    /// ```
    /// use lock_runtime::LockConfig;
    ///
    /// # fn main() -> Result<(), lock_runtime::LockError> {
    /// let config = LockConfig::new("redis://127.0.0.1")?.prefix("shop");
    /// config.validate()?;
    /// # Ok(()) }
    /// ```
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into().into_boxed_str();
        self
    }

    /// The default lease of acquisitions, 100 ms to 24 h; 10 s by default.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use lock_runtime::LockConfig;
    ///
    /// # fn main() -> Result<(), lock_runtime::LockError> {
    /// let config = LockConfig::new("redis://127.0.0.1")?
    ///     .ttl(Duration::from_secs(30))
    ///     .wait(Duration::from_secs(2));
    /// config.validate()?;
    /// # Ok(()) }
    /// ```
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// How long acquisitions wait for a held lock by default; 5 s if not set. Zero tries once.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use lock_runtime::LockConfig;
    ///
    /// # fn main() -> Result<(), lock_runtime::LockError> {
    /// // By default, a lock that is held is an error at once.
    /// let config = LockConfig::new("redis://127.0.0.1")?.wait(Duration::ZERO);
    /// config.validate()?;
    /// # Ok(()) }
    /// ```
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = Wait::AtMost(wait);
        self
    }

    /// Lets acquisitions wait for a held lock without a limit by default, while the server answers.
    ///
    /// ```
    /// use lock_runtime::LockConfig;
    ///
    /// # fn main() -> Result<(), lock_runtime::LockError> {
    /// let config = LockConfig::new("redis://127.0.0.1")?.wait_forever();
    /// config.validate()?;
    /// # Ok(()) }
    /// ```
    pub fn wait_forever(mut self) -> Self {
        self.wait = Wait::Forever;
        self
    }

    /// By default, how many callers wait for a lock at most: the next one gets
    /// [`Contended`](LockError::Contended) at once. At least 1; without a limit if not set. See
    /// [`LockRequest::max_waiters`](crate::LockRequest::max_waiters).
    ///
    /// ```
    /// # fn example() -> Result<(), lock_runtime::LockError> {
    /// use lock_runtime::LockConfig;
    ///
    /// let config = LockConfig::new("redis://127.0.0.1")?.max_waiters(8);
    /// config.validate()?;
    /// # Ok(()) }
    /// # example().unwrap();
    /// ```
    pub fn max_waiters(mut self, waiters: u32) -> Self {
        self.max_waiters = Some(waiters);
        self
    }

    /// How long acquisitions continue, within their `wait`, while the server cannot be reached or
    /// cannot serve; 2 s by default. The timer starts at the first failure, and each reply resets
    /// it. The time for which the process is suspended does not count.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use lock_runtime::LockConfig;
    ///
    /// # fn main() -> Result<(), lock_runtime::LockError> {
    /// // The failover of these servers takes up to ten seconds.
    /// let config = LockConfig::new("redis://127.0.0.1")?.unavailable_wait(Duration::from_secs(15));
    /// config.validate()?;
    /// # Ok(()) }
    /// ```
    pub fn unavailable_wait(mut self, wait: Duration) -> Self {
        self.unavailable_wait = Wait::AtMost(wait);
        self
    }

    /// Acquisitions wait for an unreachable server until their `wait` ends.
    ///
    /// ```
    /// use lock_runtime::LockConfig;
    ///
    /// # fn main() -> Result<(), lock_runtime::LockError> {
    /// let config = LockConfig::new("redis://127.0.0.1")?.wait_forever().unavailable_wait_forever();
    /// config.validate()?;
    /// # Ok(()) }
    /// ```
    pub fn unavailable_wait_forever(mut self) -> Self {
        self.unavailable_wait = Wait::Forever;
        self
    }

    /// How long [`LockManager::connect`](crate::LockManager::connect) tries to
    /// reach the server, more than zero; 5 s by default.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// use std::time::Duration;
    ///
    /// use lock_runtime::{LockConfig, LockError, LockManager};
    ///
    /// // Nothing listens there.
    /// let config = LockConfig::new("redis://127.0.0.1:1")?.connect_timeout(Duration::from_millis(50));
    /// let refused = LockManager::connect(config).await;
    /// assert!(matches!(refused, Err(LockError::Unavailable { .. })));
    /// # Ok(()) }
    /// ```
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Connects in the background: [`LockManager::connect`](crate::LockManager::connect) and
    /// [`init`](crate::init()) return at once, even while the server is down. Until it is reached,
    /// locks are [`Unavailable`](LockError::Unavailable). A refusal, such as for a wrong password,
    /// shows with the first lock.
    ///
    /// ```
    /// use lock_runtime::{LockConfig, LockManager};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// // Nothing listens there yet.
    /// let config = LockConfig::new("redis://127.0.0.1:1")?.lazy();
    /// let locks = LockManager::connect(config).await?;
    /// assert!(!locks.health().await.grants);
    /// # Ok(()) }
    /// ```
    pub fn lazy(mut self) -> Self {
        self.lazy = true;
        self
    }

    /// How long locked work may continue after a shutdown has begun; 30 s by default. If a poll of
    /// a body runs then, the shutdown waits for it, until its lease ends.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// use std::time::Duration;
    ///
    /// use lock_runtime::{LockConfig, LockManager};
    ///
    /// let config = LockConfig::new("memory:")?.shutdown_grace(Duration::from_secs(1));
    /// let locks = LockManager::connect(config).await?;
    /// locks.shutdown().await; // a body that still runs after a second is stopped
    /// # Ok(()) }
    /// ```
    pub fn shutdown_grace(mut self, grace: Duration) -> Self {
        self.shutdown_grace = grace;
        self
    }

    /// The number of connections of the manager, 1 to 64; 1 by default, which is fastest up to
    /// about a hundred thousand operations a second. Each key uses one of them.
    ///
    /// ```
    /// use lock_runtime::LockConfig;
    ///
    /// # fn main() -> Result<(), lock_runtime::LockError> {
    /// let config = LockConfig::new("redis://127.0.0.1")?.pool_size(4);
    /// config.validate()?;
    /// # Ok(()) }
    /// ```
    pub fn pool_size(mut self, connections: usize) -> Self {
        self.pool_size = connections;
        self
    }

    /// How many grants of each lock the store remembers, each with its end, for
    /// [`LockManager::history`](crate::LockManager::history); 0 by default, 1000 at most. Stores
    /// without a history are refused.
    ///
    /// Each grant and release then also writes to the history, and hand-overs within a process go
    /// through the server. So use a separate manager for the locks of jobs, with the same setting
    /// in every program: grants by other managers are not remembered. The history of a lock that
    /// nobody takes is forgotten after 32 days.
    ///
    /// ```
    /// # fn example() -> Result<(), lock_runtime::LockError> {
    /// use lock_runtime::LockConfig;
    ///
    /// let jobs = LockConfig::new("redis://127.0.0.1")?.prefix("jobs").history(20);
    /// jobs.validate()?;
    /// # Ok(()) }
    /// # example().unwrap();
    /// ```
    pub fn history(mut self, grants: usize) -> Self {
        self.history = grants;
        self
    }

    /// How many replicas of a Redis or PostgreSQL server must have a grant or renewal before it
    /// counts; 0 by default, at most 16. It costs one more round trip to the server and its
    /// replicas. If it is the number of all replicas, no failover undoes a grant. With a smaller
    /// number, a replica that lacks the grant may take over.
    ///
    /// While fewer replicas keep up, acquisitions are [`Unavailable`](LockError::Unavailable), and
    /// held locks are lost when their lease ends.
    ///
    /// ```
    /// use lock_runtime::LockConfig;
    ///
    /// # fn main() -> Result<(), lock_runtime::LockError> {
    /// // A master and two replicas: each has every grant.
    /// let config = LockConfig::new("redis://127.0.0.1")?.replicas(2);
    /// config.validate()?;
    /// # Ok(()) }
    /// ```
    pub fn replicas(mut self, replicas: usize) -> Self {
        self.replicas = replicas;
        self
    }

    /// After a start or a failover, a Redis, PostgreSQL or MySQL server may have forgotten locks.
    /// With this setting, it then grants nothing until every forgotten lease of at most
    /// `longest_ttl`, 100 ms to 24 h, has ended. In a cluster, this affects only the slots of that
    /// server.
    ///
    /// Meanwhile known leases are renewed, and acquisitions are
    /// [`Unavailable`](LockError::Unavailable), or wait if
    /// [`unavailable_wait`](Self::unavailable_wait) allows it. All clients of the server need the
    /// same setting. A longer ttl is refused. Not set by default, except for Redlock, where the
    /// default is the [`ttl`](Self::ttl) and zero switches it off.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use lock_runtime::LockConfig;
    ///
    /// # fn main() -> Result<(), lock_runtime::LockError> {
    /// // No program takes a lock for longer than half a minute.
    /// let config = LockConfig::new("redis://127.0.0.1")?.quarantine(Duration::from_secs(30));
    /// config.validate()?;
    /// # Ok(()) }
    /// ```
    pub fn quarantine(mut self, longest_ttl: Duration) -> Self {
        self.quarantine = Some(longest_ttl);
        self
    }

    /// The clock that measures leases; the machine's by default.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_runtime::LockError> {
    /// use std::time::Duration;
    ///
    /// use lock_runtime::{Clock, LockConfig, LockManager};
    ///
    /// let clock = Clock::manual();
    /// let config = LockConfig::new("memory:")?.ttl(Duration::from_secs(10)).clock(clock.clone());
    /// let locks = LockManager::connect(config).await?;
    /// let guard = locks.lock("nightly").renew(false).acquire().await?;
    /// clock.advance(Duration::from_secs(10));
    /// assert!(!guard.is_held());
    /// # Ok(()) }
    /// ```
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// A provider of user and password, which replaces those in the URL. It is asked before each
    /// connection, and before its last answer [expires](Credentials::expires_in). If the server
    /// does not accept the password, it is asked once more.
    ///
    /// It is polled within a tokio runtime, on the thread that renews the leases, so it must not
    /// block.
    ///
    /// ```
    /// # fn example() -> Result<(), lock_runtime::LockError> {
    /// use std::time::Duration;
    /// use lock_runtime::{Credentials, LockConfig};
    ///
    /// # async fn token() -> std::io::Result<String> { Ok(String::new()) }
    /// let config = LockConfig::new("redis://locks.example")?.credentials(|| async {
    ///     let token = token().await?;
    ///     let credentials = Credentials::new("shop", token);
    ///     std::io::Result::Ok(credentials.expires_in(Duration::from_secs(15 * 60)))
    /// });
    /// # Ok(()) }
    /// # example().unwrap();
    /// ```
    pub fn credentials<F, E>(mut self, provider: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Credentials, E>> + Send + 'static,
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        self.credentials = Some(Provider::new(provider));
        self
    }

    /// The settings of encrypted connections; replaces those in the URL and the environment.
    ///
    /// ```
    /// use lock_runtime::{LockConfig, Tls};
    ///
    /// # fn main() -> Result<(), lock_runtime::LockError> {
    /// let tls = Tls::new().ca_pem("no certificate");
    /// let config = LockConfig::new("rediss://locks.example")?.tls(tls);
    /// assert!(config.validate().is_err());
    /// # Ok(()) }
    /// ```
    #[cfg(feature = "tls")]
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Checks the settings without connecting, and reads the files of
    /// [`tls`](Self::tls) if there are any.
    ///
    /// # Errors
    ///
    /// [`LockError::InvalidOptions`] with the name of the first setting that is out of range or
    /// whose files are unusable.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use lock_runtime::LockConfig;
    ///
    /// # fn main() -> Result<(), lock_runtime::LockError> {
    /// let config = LockConfig::new("redis://127.0.0.1")?.ttl(Duration::ZERO);
    /// assert!(config.validate().unwrap_err().to_string().contains("ttl"));
    /// # Ok(()) }
    /// ```
    pub fn validate(&self) -> Result<(), LockError> {
        let foreign = |c: char| matches!(c, '{' | '}') || c.is_control();
        if !(1..=128).contains(&self.prefix.len()) || self.prefix.contains(foreign) {
            return Err(LockError::invalid(
                "prefix",
                "it must have 1 to 128 bytes, no braces and no control characters",
            ));
        }
        bounds::check_ttl(self.ttl)?;
        bounds::check_waiters(self.max_waiters, Some(self.wait))?;
        if self.connect_timeout.is_zero() {
            return Err(LockError::invalid("connect_timeout", "it must not be zero"));
        }
        if !(1..=64).contains(&self.pool_size) {
            return Err(LockError::invalid("pool_size", "it must be 1 to 64"));
        }
        if self.history > 1_000 {
            return Err(LockError::invalid("history", "it must be 0 to 1000"));
        }
        if self.replicas > 16 {
            return Err(LockError::invalid("replicas", "it must be 0 to 16"));
        }
        if let Some(longest) = self.longest_ttl() {
            if bounds::check_ttl(longest).is_err() {
                return Err(LockError::invalid("quarantine", "it must be 100ms to 24h"));
            }
            bounds::check_longest(self.ttl, longest)?;
        }
        let (target, can) = (&self.target, self.target.capabilities());
        if self.max_waiters.is_some() && !can.max_waiters {
            return Err(can.lacks("max_waiters"));
        }
        if self.history > 0 && !can.history {
            return Err(can.lacks_history());
        }
        if self.replicas > 0 && !target.has_replicas() {
            return Err(can.lacks("replicas"));
        }
        if self.quarantine.is_some() && target.quarantine() == Quarantine::Never {
            return Err(can.lacks("quarantine"));
        }
        #[cfg(feature = "tls")]
        check_tls(&*self.target, self.tls.as_ref())?;
        Ok(())
    }

    /// The longest lease that a server may have forgotten, if clients wait for its end.
    pub(crate) fn longest_ttl(&self) -> Option<Duration> {
        if self.target.quarantine() != Quarantine::UnlessZero {
            return self.quarantine;
        }
        let longest = self.quarantine.unwrap_or(self.ttl);
        Some(longest).filter(|it| !it.is_zero())
    }

    /// The part for stores.
    pub(crate) fn setup(&self) -> Setup {
        Setup {
            prefix: self.prefix.clone(),
            ttl: self.ttl,
            connect_timeout: self.connect_timeout,
            lazy: self.lazy,
            pool_size: self.pool_size,
            history: self.history,
            replicas: self.replicas,
            quarantine: self.longest_ttl(),
            clock: self.clock.clone(),
            credentials: self.credentials.clone(),
            #[cfg(feature = "tls")]
            tls: self.tls.clone(),
        }
    }

    /// The part for the driver.
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            shutdown_grace: self.shutdown_grace,
            unavailable_wait: self.unavailable_wait,
        }
    }
}

impl fmt::Debug for LockConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = f.debug_struct("LockConfig");
        #[cfg(feature = "tls")]
        text.field("tls", &self.tls);
        text.field("store", &format_args!("{}", self.target))
            .field("prefix", &self.prefix)
            .field("ttl", &self.ttl)
            .field("wait", &self.wait)
            .field("max_waiters", &self.max_waiters)
            .field("unavailable_wait", &self.unavailable_wait)
            .field("connect_timeout", &self.connect_timeout)
            .field("lazy", &self.lazy)
            .field("shutdown_grace", &self.shutdown_grace)
            .field("pool_size", &self.pool_size)
            .field("history", &self.history)
            .field("replicas", &self.replicas)
            .field("quarantine", &self.quarantine)
            .field("clock", &self.clock)
            .field("credentials", &self.credentials)
            .finish()
    }
}

#[cfg(test)]
mod tests;
