//! How a locked function returns an error of its lock.

use super::LockError;

/// How a locked function returns that its lock failed.
///
/// Implemented for `Result<T, E>` where `E: From<LockError>`. Other return
/// types name a function with `on_error`, because "not found" and "not locked"
/// must not merge silently.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot say that the lock failed",
    label = "this return type has no place for a `LockError`",
    note = "return a `Result` whose error implements `From<LockError>`",
    note = "or say what to return instead with `on_error = |error| …`"
)]
pub trait FromLockError {
    /// The value to return for `error`.
    fn from_lock_error(error: LockError) -> Self;
}

#[diagnostic::do_not_recommend]
impl<T, E: From<LockError>> FromLockError for Result<T, E> {
    // Apart from the functions that call it, each of which it would make larger.
    #[cold]
    #[inline(never)]
    fn from_lock_error(error: LockError) -> Self {
        Err(E::from(error))
    }
}
