//! What a program's operators see of its locks: events, metrics and spans.

pub(crate) mod events;
#[cfg(feature = "metrics")]
pub(crate) mod metrics;
pub(crate) mod spans;
