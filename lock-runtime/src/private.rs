//! What the attribute's expansion calls; no part of the public interface.

pub use crate::key::{KeyWriter, Keys, Value};
pub use crate::site::Site;

use crate::acquire::Acquire;
use crate::error::LockError;
use crate::manager::LockManager;

/// Takes the lock of an annotated function from the manager of the scope, or
/// the installed one.
pub fn acquire(site: &'static Site, keys: impl Into<Keys>) -> Acquire {
    Acquire::at_site(LockManager::current(), site, keys.into())
}

/// The same from `manager`.
pub fn acquire_with(manager: &LockManager, site: &'static Site, keys: impl Into<Keys>) -> Acquire {
    Acquire::at_site(Ok(manager.clone()), site, keys.into())
}

/// Calls what `on_error` names; a closure there learns the type of its argument
/// from this signature.
pub fn on_error<T>(error: LockError, handler: impl FnOnce(LockError) -> T) -> T {
    handler(error)
}

/// Gives the body's block the type of the function: an early return of it comes
/// first and is never reached.
///
/// # Panics
///
/// Always; the expansion calls it behind `if false`.
pub fn output<T>() -> T {
    unreachable!("stands behind `if false`")
}
