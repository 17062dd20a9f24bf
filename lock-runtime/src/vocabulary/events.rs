//! The events that the runtime emits, each in one function; the documentation of the
//! crate lists their names and fields.

use std::time::Duration;

use tracing::{debug, field, info, warn};

use crate::vocabulary::error::{Cause, LockError};
use crate::vocabulary::terms::Terms;

/// An event of the driver. It belongs to no span, since its thread may be that of
/// another caller.
macro_rules! event {
    ($level:ident, $terms:expr, $name:literal $(, $field:ident = $value:expr)*) => {
        event!([parent: None,] $level, $terms, $name $(, $field = $value)*)
    };
    ([$($parent:tt)*] $level:ident, $terms:expr, $name:literal $(, $field:ident = $value:expr)*) => {
        $level!(
            target: "lock_runtime",
            $($parent)*
            key = $terms.key.as_str(),
            function = $terms.function.map(|(_, name)| name),
            id = $terms.id.0,
            $($field = $value,)*
            $name
        )
    };
}

pub(crate) fn acquiring(terms: &Terms) {
    event!(debug, terms, "acquire", ttl = field::debug(terms.ttl));
}

pub(crate) fn waiting(terms: &Terms) {
    event!(debug, terms, "wait");
}

pub(crate) fn granted(terms: &Terms, fence: u64, waited: Duration) {
    event!(
        debug,
        terms,
        "grant",
        fence = fence,
        waited = field::debug(waited)
    );
}

pub(crate) fn cancelled(terms: &Terms) {
    event!(debug, terms, "cancel");
}

pub(crate) fn refused(terms: &Terms, error: &LockError) {
    event!(info, terms, "refuse", error = field::display(error));
}

pub(crate) fn lost(terms: &Terms, fence: u64) {
    event!(warn, terms, "loss", fence = fence);
}

/// Emitted in the span of the body, as is the next one.
pub(crate) fn stopped(terms: &Terms, fence: u64) {
    event!([] warn, terms, "stop", fence = fence);
}

pub(crate) fn overran(terms: &Terms, fence: u64) {
    event!([] warn, terms, "overrun", fence = fence);
}

pub(crate) fn renewal_failed(terms: &Terms, cause: &Cause) {
    event!(warn, terms, "renew failure", error = field::display(cause));
}

pub(crate) fn released(terms: &Terms, result: &Result<bool, Cause>) {
    match result {
        Ok(held) => event!(debug, terms, "release", held = *held),
        Err(cause) => event!(
            warn,
            terms,
            "release failure",
            error = field::display(cause)
        ),
    }
}

#[cfg(feature = "redis")]
pub(crate) fn connected(connection: usize) {
    info!(target: "lock_runtime", parent: None, connection, "connect");
}

#[cfg(feature = "redis")]
pub(crate) fn disconnected(connection: usize, cause: &Cause) {
    warn!(target: "lock_runtime", parent: None, connection, error = %cause, "disconnect");
}
