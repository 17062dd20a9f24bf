//! The spans of an acquisition, children of the caller's: one around the wait, and
//! one around the work. Without a listener there are none.

use std::panic::Location;

use tracing::span::Entered;
use tracing::{Span, field, info_span};

use crate::types::error::LockError;
use crate::types::fence::FencingToken;
use crate::types::key::LockKey;
use crate::types::terms::Terms;

/// A span until its outcome is known. It is small, since a future contains it.
#[derive(Debug, Default)]
pub(crate) struct Traced(Option<Box<Open>>);

#[derive(Debug)]
struct Open {
    span: Span,
    /// Whether it asks if the lock is free, and "no" is an answer.
    tries: bool,
}

/// A span about `$terms`; unknown values are recorded later.
macro_rules! span {
    ($name:literal, $terms:expr, $keys:expr) => {
        info_span!(
            target: "lock_runtime",
            $name,
            lock.key = names($keys),
            lock.template = $terms.template,
            lock.fencing_token = field::Empty,
            lock.outcome = field::Empty,
            code.function.name = $terms.function,
            code.file.path = $terms.asked_at.map(Location::file),
            code.line.number = $terms.asked_at.map(|it| i64::from(it.line())),
            error.type = field::Empty,
            otel.status_code = field::Empty,
            otel.status_description = field::Empty,
        )
    };
}

impl Traced {
    #[inline]
    pub(crate) const fn none() -> Self {
        Self(None)
    }

    /// For a request of all these keys, of which `terms` are those of the first.
    pub(crate) fn wait<'k>(terms: &Terms, keys: impl Iterator<Item = &'k LockKey>) -> Self {
        Self::of(span!("lock.wait", terms, keys), terms.wait.is_try())
    }

    pub(crate) fn hold<'k>(
        terms: &Terms,
        keys: impl Iterator<Item = &'k LockKey>,
        fence: u64,
    ) -> Self {
        let traced = Self::of(span!("lock.hold", terms, keys), false);
        traced.has(fence);
        traced
    }

    fn of(span: Span, tries: bool) -> Self {
        Self((!span.is_disabled()).then(|| Box::new(Open { span, tries })))
    }

    pub(crate) fn is_listened_to(&self) -> bool {
        self.0.is_some()
    }

    /// For one poll of what goes on in it.
    pub(crate) fn enter(&self) -> Option<Entered<'_>> {
        self.0.as_ref().map(|open| open.span.enter())
    }

    fn has(&self, fence: u64) {
        if let Some(open) = &self.0 {
            // OpenTelemetry's numbers have a sign; those without one become text.
            let token = FencingToken::new(fence).as_i64();
            open.span.record("lock.fencing_token", token);
        }
    }

    pub(crate) fn granted(&mut self, fence: u64) {
        self.has(fence);
        self.ends("granted");
    }

    pub(crate) fn ends(&mut self, outcome: &'static str) {
        if let Some(open) = self.0.take() {
            open.span.record("lock.outcome", outcome);
        }
    }

    /// Ends it with an error, as OpenTelemetry knows them, unless that is the answer to
    /// a try.
    pub(crate) fn fails(&mut self, error: &LockError) {
        let contended = matches!(error, LockError::Contended { .. });
        if let Some(Open { span, tries }) = self.0.as_deref()
            && !(*tries && contended)
        {
            span.record("error.type", error.kind());
            span.record("otel.status_code", "ERROR");
            span.record("otel.status_description", field::display(error));
        }
        self.ends(error.kind());
    }
}

/// Its future was dropped.
impl Drop for Traced {
    fn drop(&mut self) {
        self.ends("cancelled");
    }
}

fn names<'k>(keys: impl Iterator<Item = &'k LockKey>) -> String {
    keys.map(LockKey::as_str).collect::<Vec<_>>().join(", ")
}
