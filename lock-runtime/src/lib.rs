//! Distributed locks for async functions.
//!
//! Write one attribute, and one call per key runs at a time:
//!
//! ```
//! use lock_runtime::{LockError, distributed_lock};
//!
//! #[distributed_lock(key = "stock:{item}", ttl = "10s", wait = "5s")]
//! async fn buy(item: &str, count: u8) -> Result<u8, LockError> {
//!     Ok(count) // meanwhile, no other call runs this for the same item
//! }
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> Result<(), LockError> {
//!     let _locks = lock_runtime::init("memory:").await?; // or "redis://127.0.0.1:6379"
//!     println!("sold {}", buy("lamp", 2).await?);
//!     Ok(())
//! }
//! ```
//!
//! The lock is taken before the body runs, and a background thread renews it while the body runs.
//! When the body returns, the lock goes to the next waiter. If the lock is lost while the body
//! runs, the body is dropped where it awaits, and the caller gets [`LockError::Lost`].
//!
//! # Connect once
//!
//! [`init`] connects, and installs the [`LockManager`] that annotated functions use. Keep its
//! return value until `main` ends. A URL is enough; [`LockConfig`] has the settings, and reads them
//! from the environment or, with the feature `serde`, from a configuration file.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), lock_runtime::LockError> {
//! use std::time::Duration;
//!
//! use lock_runtime::LockConfig;
//!
//! let config = LockConfig::new("memory:")?.prefix("shop").ttl(Duration::from_secs(30));
//! let _locks = lock_runtime::init(config).await?;
//! # Ok(()) }
//! ```
//!
//! # Lock a function, or a part of one
//!
//! [`distributed_lock`] locks a function. [`LockManager::lock`] makes a [`LockRequest`] for a part of one. The request
//! [runs a closure](LockRequest::run), or returns a [`LockGuard`], which holds the lock until it is dropped.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), lock_runtime::LockError> {
//! use lock_runtime::LockManager;
//!
//! let locks = LockManager::connect("memory:").await?;
//! let sold = locks.lock("stock:lamp").run(async |_| 1).await?;
//! assert_eq!(sold, 1);
//! # Ok(()) }
//! ```
//!
//! Synchronous code takes locks with [`LockRequest::acquire_blocking`].
//!
//! # Handle errors
//!
//! | error | what happened | the body |
//! |---|---|---|
//! | [`Contended`](LockError::Contended) | another holder kept the lock until the wait ended | did not begin |
//! | [`Unavailable`](LockError::Unavailable) | the server could not be reached, or refused to serve | did not begin |
//! | [`Lost`](LockError::Lost) | the lease ended while the body ran | was stopped |
//!
//! [`LockError::is_retryable`], [`retry_after`](LockError::retry_after) and
//! [`public_message`](LockError::public_message) help a service to answer its clients.
//!
//! # Reject late writes
//!
//! A lock cannot stop a write that has left the process. If a late write would do harm, send
//! [`LockGuard::fencing_token`] with each write: a database that rejects numbers below the largest
//! it has seen accepts no write of an overtaken holder.
//!
//! # Look at locks
//!
//! [`LockManager::status`] returns the holders and waiters of a lock. [`LockManager::health`] is for a readiness probe.
//! [`inspect`] has all answers. The crate emits `tracing` events with the target `lock_runtime`, the spans `lock.wait` and
//! `lock.hold`, and metrics with the feature `metrics`. The program `lockctl` shows locks in a shell and as a web page.
//!
//! # Test
//!
//! With the feature `testing`, `testing::Locks` provides locks in memory, with faults on demand.
//!
//! # Read more
//!
//! The folder `docs/` of the repository has a guide, how-to pages, a reference and
//! explanations. Its `README.md` lists them.
//!
//! # Features
//!
//! | feature | on by default | what it adds |
//! |---|---|---|
//! | `macros` | yes | [`distributed_lock`] and [`key!`] |
//! | `redis` | yes | Redis and Valkey; `memory:` needs no feature |
//! | `etcd` | no | locks in a cluster of etcd |
//! | `metrics` | no | metrics through the `metrics` facade; `watching.md` lists them |
//! | `mysql` | no | locks in a MySQL or MariaDB database, `mysql://` |
//! | `postgres` | no | locks in a PostgreSQL database, `postgres://` |
//! | `serde` | no | deserializes [`LockConfig`] as a part of a program's configuration, and serializes the answers of [`inspect`] |
//! | `testing` | no | locks and errors for the tests of programs |
//! | `tls` | no | encrypted connections, such as `rediss://`, `etcds://` and `zookeepers://` |
//! | `tls-native-roots` | no | trusts the certificate authorities of the system |
//! | `zookeeper` | no | locks that survive a failover, `zookeeper://` |

#![cfg_attr(docsrs, feature(doc_cfg))]
// Code for some stores is compiled for all. A build with every store finds code that none needs.
#![cfg_attr(
    not(all(
        feature = "etcd",
        feature = "mysql",
        feature = "postgres",
        feature = "redis",
        feature = "tls",
        feature = "zookeeper"
    )),
    allow(dead_code)
)]

mod api;
mod backend;
mod base;
mod driver;
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing;
mod held;
#[cfg(all(test, feature = "redis"))]
mod simulation;
mod telemetry;
mod types;

#[doc(hidden)]
pub use api::expansion as __private;

pub use api::acquire::Acquire;
pub use api::config::LockConfig;
pub use api::election::{Candidate, Election};
pub use api::installed::{Installed, Scope, init, shutdown};
pub use api::leaders::Leaders;
pub use api::leadership::Leadership;
pub use api::manager::LockManager;
pub use api::request::LockRequest;
pub use backend::capabilities::Capabilities;
#[cfg(feature = "mysql")]
pub use backend::mysql::sql::script as mysql_script;
#[cfg(feature = "postgres")]
pub use backend::postgres::sql::script as postgres_script;
pub use base::clock::Clock;
pub use held::asked::{Asked, asked};
pub use held::guard::{LockGuard, Lost, current};
pub use held::hold::{Hold, HoldUnstopped};
pub use types::credentials::Credentials;
pub use types::error::LockError;
pub use types::error::conversion::FromLockError;
pub use types::fence::FencingToken;
pub use types::into_key::IntoKey;
pub use types::key::LockKey;
pub use types::leader::Leader;
pub use types::ticket::Ticket;
#[cfg(feature = "tls")]
pub use types::tls::Tls;

/// Answers about locks and their store: holders and waiters, changes, and findings about the server.
///
/// | from | you get |
/// |---|---|
/// | [`LockManager::status`] | a [`Status`](inspect::Status): the holders of one lock, and its waiters |
/// | [`LockManager::overview`] | an [`Overview`](inspect::Overview): all locks, and each [`Change`](inspect::Change) since another overview |
/// | [`LockManager::history`], [`LockManager::last`] | each [`Grant`](inspect::Grant) of a lock that its store remembers |
/// | [`LockManager::graph`] | a [`Graph`](inspect::Graph): which holders wait for other locks, and each [`Cycle`](inspect::Cycle) among them |
/// | [`LockManager::diagnose`] | each [`Finding`](inspect::Finding) about the server |
/// | [`LockManager::health`] | the [`Health`](inspect::Health) of the connection |
/// | [`LockError::Contended`] | the present [`Holder`](inspect::Holder) |
///
/// With the feature `serde` all of them implement `Serialize`. Fields keep their names, except that
/// times name their unit:
///
/// | field ends in | value |
/// |---|---|
/// | `_ms`, `_us` | a duration in whole milliseconds or microseconds: `remaining_ms`, `round_trip_us` |
/// | `_unix_ms` | a moment in whole milliseconds since 1970, UTC: `since_unix_ms` |
///
/// Keys and kinds are texts, as `Display` writes them, and fencing tokens are numbers. Unknown
/// values are `None`.
pub mod inspect {
    pub use crate::types::enclosing::HeldLock;
    pub use crate::types::finding::{Finding, Severity};
    pub use crate::types::graph::{Cycle, Edge, Graph};
    pub use crate::types::health::{Health, LastError};
    pub use crate::types::history::{Grant, GrantEnd};
    pub use crate::types::holder::{Holder, Status, Waiter};
    pub use crate::types::kind::Kind;
    pub use crate::types::overview::{Change, ChangeKind, Overview, Summary};
}

/// Locks for the tests of programs, with the feature `testing`.
///
/// [`Locks`](testing::Locks) has a [`LockManager`] on a store in memory that the test controls. It
/// uses the clock of the test's tokio runtime: with `#[tokio::test(start_paused = true)]`, a wait of
/// two seconds takes no time.
///
/// | to see | write |
/// |---|---|
/// | contention | `let other = locks.hold("stock:lamp").await?;`, and `drop(other)` |
/// | an unreachable server | `locks.disconnect();`, and `locks.reconnect()` |
/// | a slow server | `locks.delay(Duration::from_millis(300));` |
/// | a lock that is revoked | `locks.manager().force_release("stock:lamp").await?;` |
/// | time that passes, with renewals | `tokio::time::sleep(MINUTE).await;` |
/// | a suspended process | `tokio::time::advance(MINUTE).await;` |
///
/// ```
/// use lock_runtime::testing::{Event, Locks};
/// # #[cfg(feature = "macros")] {
/// use lock_runtime::{LockError, distributed_lock};
///
/// #[distributed_lock(key = "stock:{item}", wait = "2s")]
/// async fn buy(item: &str) -> Result<(), LockError> {
///     Ok(())
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), LockError> {
/// let locks = Locks::new();
/// locks.scope(buy("lamp")).await?;
/// let (taken, freed) = (Event::Acquired("stock:lamp".parse()?), Event::Released("stock:lamp".parse()?));
/// assert_eq!(locks.history(), [taken, freed]);
/// # Ok(()) }
/// # main().unwrap() }
/// ```
///
/// `docs/testing.md` of the repository has more tests.
#[cfg(feature = "testing")]
pub mod testing {
    pub use crate::api::testing::Locks;
    pub use crate::backend::testing::history::Event;
}

/// Makes a `Result<LockKey, LockError>` from the variables in scope, as the attribute's `key` does
/// from the arguments of its function. Methods accept the result [as a name](IntoKey). As in the
/// attribute, `crate = path` names this crate where it has another path.
///
/// # Errors
///
/// [`LockError::InvalidKey`] if the key is empty or longer than 1024 bytes, or a value could not be
/// formatted.
///
/// ```
/// # fn example() -> Result<(), lock_runtime::LockError> {
/// use lock_runtime::key;
///
/// let (shop, item) = ("north:1", 7);
/// assert_eq!(key!("stock:{shop}:{item:03}")?, "stock:north%3A1:007");
/// # Ok(()) }
/// # example().unwrap();
/// ```
#[cfg(feature = "macros")]
pub use lock_macros::key;

/// Runs the body of an `async fn` under a lock.
///
/// | argument | form | default |
/// |---|---|---|
/// | `key` | a string; expressions over the arguments in braces, with or without a format spec; or several strings in an array, `["acct:{from}", "acct:{to}"]`, taken all or none | required, unless there is a `ticket` |
/// | `ticket` | an expression for a [`Ticket`], whose lock is adopted; not with `key`, `mode`, `permits`, `take`, `max_waiters`, `reentrant` | none |
/// | `ttl` | `"1m 30s"`, units `h`, `m`, `s`, `ms`, or an expression of type `Duration` over the arguments; 100 ms to 24 h | [`LockConfig::ttl`] |
/// | `wait` | written as `ttl`, at most 24 h: `"0s"` tries once; or `"forever"` | [`LockConfig::wait`] |
/// | `renew` | `true`; `false`: a fixed lease, and the body is stopped at its end | `true` |
/// | `min_hold` | `"1m"`, written as `ttl`, at most 24 h: nobody else gets the lock before this time has passed since the grant, even if the body ends sooner, panics or is dropped; the caller does not wait. A reentrant call ignores it | none |
/// | `max_hold` | `"10m"`, written as `ttl`, 10 ms to 24 h: the lock is held for at most this long; then the body is stopped, or notified with `on_lost = "notify"`. In a reentrant call, it stops only the inner call | none |
/// | `mode` | `"exclusive"`; `"read"`: readers share the lock; `"write"`: the same as `"exclusive"` | `"exclusive"` |
/// | `permits` | `4`, or an expression of type `u32`: up to this many holders at once; not with a `mode` | one holder |
/// | `take` | `2`, or an expression of type `u32`: how many of the `permits` the call takes | `1` |
/// | `max_waiters` | `8`, or an expression of type `u32`: if this many wait already, [`LockError::Contended`] at once; not with `wait = "0s"` | the manager's, no limit |
/// | `reentrant` | `true` or `false`: called under the same lock, this function re-enters it, instead of failing with [`LockError::AlreadyHeld`] | `false` |
/// | `release` | `"detached"`; `"confirmed"`: return after the server's answer to the release, whose failure is ignored | `"detached"` |
/// | `on_lost` | `"cancel"`: the body is stopped; `"notify"`: the body runs on, and can ask its guard | `"cancel"` |
/// | `on_error` | a closure or path that turns a [`LockError`] into the return value | [`FromLockError`] |
/// | `guard` | the name of a `&`[`LockGuard`] in the body | none |
/// | `manager` | an expression over the arguments for a [`LockManager`], or for a value that dereferences to one, such as `Arc<LockManager>` | the installed one |
/// | `crate` | the path of this crate | `::lock_runtime` |
///
/// The compiler checks texts and constants, whose names are in capitals. Other expressions are
/// evaluated once, before the body; invalid values return [`LockError::InvalidOptions`].
///
/// The values in the key are evaluated once, before the body, and escaped, so that no value can
/// imitate the text around it. Arguments that the body uses are dropped before the lock is
/// released. The future is `Send` if it would be without the attribute; with
/// `release = "confirmed"`, the output must be `Send` too.
///
/// ```
/// use lock_runtime::{LockManager, distributed_lock};
///
/// struct Shop {
///     locks: LockManager,
///     name: String,
/// }
///
/// impl Shop {
///     #[distributed_lock(
///         key = "stock:{self.name}:{item}",
///         wait = "0s",
///         manager = self.locks,
///         guard = lock,
///         on_error = |_| None,
///     )]
///     async fn reserve(&self, item: u32) -> Option<u64> {
///         Some(lock.fencing_token().get())
///     }
/// }
/// ```
#[cfg(feature = "macros")]
pub use lock_macros::distributed_lock;
