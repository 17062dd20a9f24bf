//! The events that the runtime emits, each at one place; their names and fields
//! are listed in the crate's documents.

use std::time::Duration;

use tracing::{debug, field, info, warn};

use crate::backend::Cause;
use crate::error::LockError;
use crate::lease::Lease;
use crate::terms::Terms;

/// An event of the driver: it belongs to no span, since the thread may be a
/// caller's and in the span of another call.
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

pub(crate) fn granted(lease: &Lease, waited: Duration) {
    event!(
        debug,
        lease.terms,
        "grant",
        fence = lease.fence,
        waited = field::debug(waited)
    );
}

pub(crate) fn cancelled(terms: &Terms) {
    event!(debug, terms, "cancel");
}

pub(crate) fn refused(terms: &Terms, error: &LockError) {
    event!(info, terms, "refuse", error = field::display(error));
}

pub(crate) fn lost(lease: &Lease) {
    event!(warn, lease.terms, "loss", fence = lease.fence);
}

/// In the span of the body, as the next one.
pub(crate) fn stopped(lease: &Lease) {
    event!([] warn, lease.terms, "stop", fence = lease.fence);
}

pub(crate) fn overran(lease: &Lease) {
    event!([] warn, lease.terms, "overrun", fence = lease.fence);
}

pub(crate) fn renewal_failed(lease: &Lease, cause: &Cause) {
    event!(
        warn,
        lease.terms,
        "renew failure",
        error = field::display(cause)
    );
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
