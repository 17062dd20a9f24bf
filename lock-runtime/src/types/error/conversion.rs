//! Converts an error of a lock into the output of a locked function.

use super::LockError;

/// Converts an error of a lock into the output of a locked function.
///
/// Implemented for `Result<T, E>` with `E: From<LockError>`. Other outputs need a function in
/// `on_error`, because "not found" and "not locked" must not merge silently.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot say that the lock failed",
    label = "this return type has no place for a `LockError`",
    note = "return a `Result` whose error implements `From<LockError>`",
    note = "or say what to return instead with `on_error = |error| …`"
)]
pub trait FromLockError {
    /// The output for `error`.
    fn from_lock_error(error: LockError) -> Self;
}

#[diagnostic::do_not_recommend]
impl<T, E: From<LockError>> FromLockError for Result<T, E> {
    // Not inlined, since it would make each caller larger.
    #[cold]
    #[inline(never)]
    fn from_lock_error(error: LockError) -> Self {
        Err(E::from(error))
    }
}
