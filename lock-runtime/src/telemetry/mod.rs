//! The views of a program's operators: events, metrics and spans.

pub(crate) mod events;
#[cfg(feature = "metrics")]
pub(crate) mod metrics;
pub(crate) mod spans;
