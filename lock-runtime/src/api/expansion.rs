//! The functions that expanded code calls; not part of the public interface.

use std::future::Future;
use std::sync::Arc;

pub use crate::api::function::Function;
pub use crate::api::locked::{Locked, Released};
pub use crate::api::site::Site;
pub use crate::types::key::writer::{Displayed, KeyValue, Value, formatted, key, value};

use crate::api::acquire::Acquire;
use crate::api::manager::LockManager;
use crate::api::settings::Settings;
use crate::held::guard::{self, LockGuard};
use crate::types::error::LockError;
use crate::types::key::LockKey;
use crate::types::keys::Keys;
use crate::types::ticket::Ticket;

/// What [`key()`] has made of each key of an annotated function.
type Written<const N: usize> = [Result<LockKey, LockError>; N];

/// Takes the lock of an annotated function from the manager of the scope, or
/// the installed one.
#[inline(never)]
pub fn acquire<const N: usize>(
    site: &Site,
    function: &'static Function,
    keys: Written<N>,
) -> Acquire {
    let keys = &mut keys.into_iter();
    match LockManager::current() {
        Ok(manager) => request(&manager, site, function, keys),
        Err(error) => Acquire::refused(error),
    }
}

/// The same from `manager`.
#[inline(never)]
pub fn acquire_with<const N: usize>(
    manager: &LockManager,
    site: &Site,
    function: &'static Function,
    keys: Written<N>,
) -> Acquire {
    request(manager, site, function, &mut keys.into_iter())
}

/// Not compiled for each number of keys.
fn request(
    manager: &LockManager,
    site: &Site,
    function: &'static Function,
    keys: &mut dyn Iterator<Item = Result<LockKey, LockError>>,
) -> Acquire {
    let settings = Settings {
        function: Some(function.name()),
        ..site.0.clone()
    };
    Acquire::new(Arc::clone(manager.shared()), &settings, Keys::new(keys))
}

/// Adopts the ticket of an annotated function, from the manager of the scope or the installed one.
#[inline(never)]
pub fn adopt(site: &Site, function: &'static Function, ticket: &Ticket) -> Acquire {
    match LockManager::current() {
        Ok(manager) => adopt_with(&manager, site, function, ticket),
        Err(error) => Acquire::refused(error),
    }
}

/// The same from `manager`.
#[inline(never)]
pub fn adopt_with(
    manager: &LockManager,
    site: &Site,
    function: &'static Function,
    ticket: &Ticket,
) -> Acquire {
    let mut settings = Settings {
        function: Some(function.name()),
        ..site.0.clone()
    };
    settings.adopt(ticket);
    let key = Ok(ticket.key.clone());
    Acquire::new(Arc::clone(manager.shared()), &settings, Keys::new([key]))
}

/// Takes the lock and runs the body for as long as the lock is surely held, as
/// [`LockGuard::hold`] does. The guard comes with what the body returns.
#[inline]
pub fn hold<F: Future>(request: Acquire, body: F) -> Locked<F> {
    Locked::new(request, body)
}

/// The same, and then [`LockGuard::release`]. If the lock fails, `failure` makes the output.
#[inline]
pub fn hold_and_release<F: Future>(
    request: Acquire,
    body: F,
    failure: fn(LockError) -> F::Output,
) -> Released<F> {
    Released::new(request, body, failure)
}

/// The guard of the lock that the body runs under, for `guard = …`.
///
/// # Panics
///
/// Outside the body, where the expansion does not call it.
pub fn guard() -> LockGuard {
    guard::current().expect("the body runs under its lock")
}

/// Calls the handler that `on_error` names; from this signature a closure gets the
/// type of its argument.
pub fn on_error<T>(error: LockError, handler: impl FnOnce(LockError) -> T) -> T {
    handler(error)
}

/// Does nothing, but the compiler warns of it where the output is a stream or a future.
#[deprecated(
    note = "the lock is released when this function returns, and the stream or future that it returns runs after that: do the work in the body, or take the lock with `lock(…).acquire()` and keep the guard together with what is returned. If that work needs no lock, write `#[allow(deprecated)]` above the function"
)]
pub fn runs_after_the_release() {}

/// Gives the body's block the return type of the function: the block begins with an
/// early return of this, which is never reached.
///
/// # Panics
///
/// Always; the expansion calls it behind `if false`.
pub fn output<T>() -> T {
    unreachable!("stands behind `if false`")
}
