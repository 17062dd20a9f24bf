//! Distributed locks for async functions.
//!
//! Write one attribute, and the function runs in one process at a time:
//!
//! ```
//! use lock_runtime::{LockError, distributed_lock};
//!
//! #[distributed_lock(key = "stock:{item}", ttl = "10s", wait = "5s")]
//! async fn buy(item: &str, count: u8) -> Result<u8, LockError> {
//!     Ok(count) // meanwhile, no other process runs this for the same item
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
//! The lock is taken before the body and renewed while it runs, from a thread of
//! its own. When the body returns, the lock goes to the next waiter. If it is
//! lost before, the body is dropped where it awaits and the caller gets
//! [`LockError::Lost`].
//!
//! # Connect once
//!
//! [`init`] connects, and installs the [`LockManager`] that annotated functions use. Keep what it returns until the end
//! of `main`. A URL is enough; [`LockConfig`] has the settings, also from the environment or, with the feature `serde`,
//! from a configuration file.
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
//! [`distributed_lock`] locks a function. [`LockManager::lock`] makes a [`LockRequest`] for a part of one: it
//! [runs a closure](LockRequest::run), or gives a [`LockGuard`] that holds the lock until it is dropped.
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
//! Code that is not async takes locks with [`LockRequest::acquire_blocking`].
//!
//! # Handle what goes wrong
//!
//! | error | what happened | the body |
//! |---|---|---|
//! | [`Contended`](LockError::Contended) | somebody else held the lock until the wait ended | did not begin |
//! | [`Unavailable`](LockError::Unavailable) | the server could not be asked | did not begin |
//! | [`Lost`](LockError::Lost) | the lease ended while the body ran | was stopped |
//!
//! [`LockError::is_retryable`], [`retry_after`](LockError::retry_after) and
//! [`public_message`](LockError::public_message) say what a service answers then.
//!
//! # Reject late writes
//!
//! A lock makes it rare that two holders work at once. Where that must not happen, send
//! [`LockGuard::fencing_token`] along with each write: a database that rejects a smaller number than the last one
//! accepts no write of a holder that was overtaken.
//!
//! # Look at locks
//!
//! [`LockManager::status`] says who holds a lock, since when, and who waits; [`LockManager::health`] answers a readiness
//! probe; [`inspect`] has all answers. The crate emits `tracing` events with the target `lock_runtime`, the spans
//! `lock.wait` and `lock.hold`, and metrics with the feature `metrics`. The program `lockctl` shows the same on a shell
//! and as a web page.
//!
//! # Test
//!
//! With the feature `testing`, `testing::Locks` has locks in memory whose faults a test chooses.
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
//! | `redis` | yes | Redis and Valkey; `memory:` is always there |
//! | `etcd` | no | locks in a cluster of etcd |
//! | `metrics` | no | counts and measures through the `metrics` facade; `watching.md` lists what |
//! | `postgres` | no | locks in a PostgreSQL database, `postgres://` |
//! | `serde` | no | [`LockConfig`] as a part of a program's configuration; the answers of [`inspect`] for others to read |
//! | `testing` | no | locks, and errors made by hand, for the tests of programs |
//! | `tls` | no | encrypted connections, `rediss://`, `valkeys://` and `etcds://` |
//! | `tls-native-roots` | no | trust in the authorities that the system trusts |
//! | `zookeeper` | no | locks that a failover does not forget, `zookeeper://` |

#![cfg_attr(docsrs, feature(doc_cfg))]
// What only some stores need is compiled for all; with every store, what none needs is found.
#![cfg_attr(
    not(all(
        feature = "etcd",
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
mod held;
#[cfg(all(test, feature = "redis"))]
mod simulation;
mod telemetry;
mod types;

#[doc(hidden)]
pub use api::expansion as __private;

pub use api::acquire::Acquire;
pub use api::config::LockConfig;
pub use api::installed::{Installed, Scope, init, shutdown};
pub use api::manager::LockManager;
pub use api::request::LockRequest;
pub use backend::capabilities::Capabilities;
#[cfg(feature = "postgres")]
pub use backend::postgres::sql::script as postgres_script;
pub use base::clock::Clock;
pub use held::guard::{LockGuard, Lost, current};
pub use held::hold::{Hold, HoldUnstopped};
pub use types::credentials::Credentials;
pub use types::error::LockError;
pub use types::error::conversion::FromLockError;
pub use types::fence::FencingToken;
pub use types::into_key::IntoKey;
pub use types::key::LockKey;
#[cfg(feature = "tls")]
pub use types::tls::Tls;

/// Answers about locks and their store: who holds a lock and who waits for it, what changes, and
/// what a server may break.
///
/// | from | comes |
/// |---|---|
/// | [`LockManager::status`] | a [`Status`](inspect::Status): the holders of one lock, and its waiters |
/// | [`LockManager::overview`] | an [`Overview`](inspect::Overview): all locks, and each [`Change`](inspect::Change) since another overview |
/// | [`LockManager::history`], [`LockManager::last`] | each [`Grant`](inspect::Grant) of a lock that its store remembers |
/// | [`LockManager::diagnose`] | each [`Finding`](inspect::Finding) about the server |
/// | [`LockManager::health`] | the [`Health`](inspect::Health) of the connection |
/// | [`LockError::Contended`] | the [`Holder`](inspect::Holder) in the way |
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
    pub use crate::types::finding::{Finding, Severity};
    pub use crate::types::health::{Health, LastError};
    pub use crate::types::history::{Grant, GrantEnd};
    pub use crate::types::holder::{Holder, Status, Waiter};
    pub use crate::types::kind::Kind;
    pub use crate::types::overview::{Change, ChangeKind, Overview, Summary};
}

/// Locks for the tests of programs, with the feature `testing`.
///
/// [`Locks`](testing::Locks) has a [`LockManager`] on a store in memory that the test controls.
/// It keeps to the clock of the test's tokio runtime: with
/// `#[tokio::test(start_paused = true)]` a wait of two seconds takes no time.
///
/// | to see | write |
/// |---|---|
/// | contention | `let other = locks.hold("stock:lamp").await?;`, and `drop(other)` |
/// | an unreachable server | `locks.disconnect();`, and `locks.reconnect()` |
/// | a slow server | `locks.delay(Duration::from_millis(300));` |
/// | a lock that is revoked | `locks.manager().force_release("stock:lamp").await?;` |
/// | time that passes, with renewals | `tokio::time::sleep(MINUTE).await;` |
/// | a process that stood still | `tokio::time::advance(MINUTE).await;` |
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

/// Makes a [`LockKey`] from the variables in scope, as the attribute's `key`
/// does from the arguments of its function: a `Result<LockKey, LockError>`, which also
/// [names a lock](IntoKey).
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
/// | `key` | a string; expressions over the arguments in braces, with or without a format spec; or several strings in an array, `["acct:{from}", "acct:{to}"]`, taken all or none | required |
/// | `ttl` | `"1m 30s"`, units `h`, `m`, `s`, `ms`, or an expression of type `Duration` over the arguments; 100 ms to 24 h | [`LockConfig::ttl`] |
/// | `wait` | the same, `"0s"` to try once, or `"forever"` | [`LockConfig::wait`] |
/// | `renew` | `true`; `false`: a fixed lease, at whose end the body is stopped | `true` |
/// | `min_hold` | `"1m"`, a duration as `ttl`: the lock stays taken for at least this long, even if the body ends sooner, panics or is dropped; the caller does not wait. A call that joins ignores it | none |
/// | `max_hold` | `"10m"`, a duration as `ttl`: the lock is held for at most this long; then the body is stopped, or notified with `on_lost = "notify"`. In a call that joins it stops that call alone | none |
/// | `mode` | `"exclusive"`; `"read"`: readers share the lock; `"write"`: the same as `"exclusive"` | `"exclusive"` |
/// | `permits` | `4`, or an expression of type `u32`: up to this many holders at once; not with a `mode` | one holder |
/// | `reentrant` | `true` or `false`: a call from the body that takes the same lock joins it instead of failing with [`LockError::AlreadyHeld`] | `false` |
/// | `release` | `"detached"`; `"confirmed"`: return after the server has answered | `"detached"` |
/// | `on_lost` | `"cancel"`: the body is stopped; `"notify"`: it runs on, and can ask its guard | `"cancel"` |
/// | `on_error` | a closure or path, from [`LockError`] to the return type | [`FromLockError`] |
/// | `guard` | the name of a `&`[`LockGuard`] in the body | none |
/// | `manager` | an expression over the arguments, a [`LockManager`], or what derefs to one, as `Arc<LockManager>` | the installed one |
/// | `crate` | the path of this crate | `::lock_runtime` |
///
/// A constant, whose name is in capitals, is checked by the compiler, as texts are.
/// Any other expression is evaluated once, before the body, and checked then:
/// [`LockError::InvalidOptions`].
///
/// The values in the key are evaluated once, before the body, and escaped: none
/// can imitate the text around it. Arguments that the body uses are dropped
/// before the lock is released. The future is `Send` where it would be without
/// the attribute, except that with `release = "confirmed"` the output has to be
/// `Send` for that.
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
