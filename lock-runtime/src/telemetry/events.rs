//! Events of locks and connections, one function each: reported as an event of
//! `tracing`, and counted. `docs/watching.md` lists names and fields.

use std::time::Duration;

use tracing::{debug, field, info, trace, warn};

#[cfg(feature = "metrics")]
use crate::telemetry::metrics;
use crate::types::error::{Cause, LockError};
use crate::types::key::LockKey;
use crate::types::terms::Terms;

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
            function = $terms.function,
            template = $terms.template,
            id = $terms.id.0,
            $($field = $value,)*
            $name
        )
    };
}

/// How an acquisition ended, before the server is notified.
#[derive(Clone, Copy, Debug)]
pub(crate) enum End {
    /// The lease was kept for so long.
    Kept(Duration),
    /// It was lost after so long.
    Lost(Duration),
    /// It was kept for so long, which is as long as it may be.
    Limited(Duration),
    /// It was granted so long ago, and its caller never got it.
    Untaken(Duration),
    /// It was given up before a grant, or takes back a ticket.
    Withdrawn,
    /// After so long its holder left a ticket for it.
    Issued(Duration),
}

impl End {
    /// How long it was held, if it was.
    pub(crate) fn held(self) -> Option<Duration> {
        match self {
            Self::Kept(held)
            | Self::Lost(held)
            | Self::Limited(held)
            | Self::Untaken(held)
            | Self::Issued(held) => Some(held),
            Self::Withdrawn => None,
        }
    }

    /// In one word; `found` says whether the server still had it.
    fn outcome(self, found: bool) -> &'static str {
        match self {
            Self::Kept(_) if found => "released",
            Self::Issued(_) if found => "ticket",
            Self::Kept(_) | Self::Issued(_) => "absent",
            Self::Lost(_) => "lost",
            Self::Limited(_) => "limited",
            Self::Untaken(_) | Self::Withdrawn => "withdrawn",
        }
    }
}

pub(crate) fn acquiring(terms: &Terms) {
    event!(debug, terms, "acquire", ttl_ms = millis(terms.ttl));
    #[cfg(feature = "metrics")]
    metrics::acquiring(terms);
}

pub(crate) fn waiting(terms: &Terms) {
    event!(debug, terms, "wait");
}

pub(crate) fn granted(terms: &Terms, fence: u64, waited: Duration) {
    event!(
        debug,
        terms,
        "grant",
        fencing_token = fence,
        waited_ms = millis(waited)
    );
    #[cfg(feature = "metrics")]
    {
        metrics::answered(terms, "granted", waited);
        metrics::held(terms);
    }
}

pub(crate) fn cancelled(terms: &Terms, waited: Duration) {
    event!(debug, terms, "cancel", waited_ms = millis(waited));
    #[cfg(feature = "metrics")]
    metrics::answered(terms, "cancelled", waited);
}

pub(crate) fn refused(terms: &Terms, error: &LockError, waited: Duration) {
    let expected = match error {
        LockError::Contended { holder, .. } => {
            // A try asks whether the lock is free, and this is an answer. Under overload, one event for
            // each refusal would be too many.
            terms.wait.is_try() || holder.as_ref().is_some_and(|it| it.crowd.is_full)
        }
        _ => false,
    };
    if expected {
        event!(
            debug,
            terms,
            "refuse",
            kind = error.kind(),
            error = field::display(error),
            waited_ms = millis(waited)
        );
    } else {
        event!(
            info,
            terms,
            "refuse",
            kind = error.kind(),
            error = field::display(error),
            waited_ms = millis(waited)
        );
    }
    #[cfg(feature = "metrics")]
    metrics::answered(terms, error.kind(), waited);
}

/// A lease that would have ended after `left` goes on.
pub(crate) fn renewed(terms: &Terms, left: Duration) {
    event!(trace, terms, "renew", left_ms = millis(left));
    #[cfg(feature = "metrics")]
    metrics::renewed(terms, left);
}

pub(crate) fn renewal_failed(terms: &Terms, cause: &Cause) {
    event!(warn, terms, "renew failure", error = field::display(cause));
    #[cfg(feature = "metrics")]
    metrics::renewal_failed(terms);
}

pub(crate) fn lost(terms: &Terms, fence: u64, held: Duration) {
    event!(
        warn,
        terms,
        "loss",
        fencing_token = fence,
        held_ms = millis(held)
    );
    #[cfg(feature = "metrics")]
    metrics::lost(terms);
}

/// A writer goes on as a reader.
pub(crate) fn downgraded(terms: &Terms, fence: u64) {
    event!(debug, terms, "downgrade", fencing_token = fence);
}

/// Somebody would like to have the lock.
pub(crate) fn asked(terms: &Terms, fence: u64) {
    event!(info, terms, "ask", fencing_token = fence);
}

pub(crate) fn limited(terms: &Terms, fence: u64, held: Duration) {
    event!(
        info,
        terms,
        "limit",
        fencing_token = fence,
        held_ms = millis(held)
    );
    #[cfg(feature = "metrics")]
    metrics::limited(terms);
}

/// In the span of the body, as the next one.
pub(crate) fn stopped(terms: &Terms, fence: u64, held: Duration) {
    event!([] warn, terms, "stop", fencing_token = fence, held_ms = millis(held));
}

pub(crate) fn overran(terms: &Terms, fence: u64, held: Duration) {
    event!([] warn, terms, "overrun", fencing_token = fence, held_ms = millis(held));
    #[cfg(feature = "metrics")]
    metrics::overran(terms);
}

/// The server has answered, after `took`.
pub(crate) fn released(terms: &Terms, end: End, took: Duration, result: &Result<bool, Cause>) {
    match result {
        Ok(found) => event!(
            debug,
            terms,
            "release",
            outcome = end.outcome(*found),
            held_ms = end.held().map(millis),
            took_ms = millis(took)
        ),
        Err(cause) => event!(
            warn,
            terms,
            "release failure",
            error = field::display(cause),
            held_ms = end.held().map(millis),
            took_ms = millis(took)
        ),
    }
    #[cfg(feature = "metrics")]
    {
        if let Some(held) = end.held() {
            metrics::released(terms, held, took);
        }
        if result.is_err() {
            metrics::release_failed(terms);
        }
    }
}

/// A caller of this process has taken a lock away from so many holders.
pub(crate) fn revoked(key: &LockKey, holders: usize) {
    warn!(target: "lock_runtime", key = key.as_str(), holders, "revoke");
}

pub(crate) fn connected(connection: usize) {
    info!(target: "lock_runtime", parent: None, connection, "connect");
    #[cfg(feature = "metrics")]
    metrics::connected();
}

pub(crate) fn disconnected(connection: usize, cause: &Cause) {
    warn!(target: "lock_runtime", parent: None, connection, error = %cause, "disconnect");
    #[cfg(feature = "metrics")]
    metrics::disconnected();
}

/// A manager connects to a store that keeps fewer promises than others.
#[cfg(feature = "redis")]
pub(crate) fn weak_store(store: &str, without: &str) {
    warn!(target: "lock_runtime", parent: None, store, without, "weak store");
}

/// The connection stays open as long as the server leaves it so.
#[cfg(feature = "redis")]
pub(crate) fn login_failed(connection: usize, cause: &Cause) {
    warn!(target: "lock_runtime", parent: None, connection, error = %cause, "login failure");
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
