//! Distributed locks for async functions.

#[doc(hidden)]
#[path = "private.rs"]
pub mod __private;
mod backend;
mod clock;
mod config;
mod driver;
mod error;
mod guard;
mod hold;
mod key;
mod lease;
mod manager;
mod observe;
mod request;
mod site;
mod watchdog;

pub use clock::Clock;
pub use config::LockConfig;
pub use error::{FromLockError, Holder, LockError};
pub use guard::{FencingToken, LockGuard, Lost};
pub use hold::Hold;
pub use key::LockKey;
pub use manager::{Installed, LockManager, Scope, init, shutdown};
pub use request::{Acquire, LockRequest};

#[cfg(feature = "macros")]
pub use lock_macros::{distributed_lock, key};
