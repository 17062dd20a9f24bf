//! The values that all floors above share: names and kinds of locks, terms, errors,
//! events.

pub(crate) mod answer;
#[cfg(any(feature = "etcd", feature = "redis", feature = "zookeeper"))]
pub(crate) mod authority;
pub(crate) mod credentials;
pub(crate) mod crowd;
pub(crate) mod deadline;
pub(crate) mod duration;
pub(crate) mod error;
mod escaped;
pub(crate) mod events;
pub(crate) mod fence;
pub(crate) mod finding;
pub(crate) mod health;
pub(crate) mod holder;
pub(crate) mod key;
pub(crate) mod kind;
#[cfg(feature = "metrics")]
pub(crate) mod metrics;
pub(crate) mod overview;
pub(crate) mod query;
pub(crate) mod spans;
pub(crate) mod terms;
#[cfg(feature = "tls")]
pub(crate) mod tls;
pub(crate) mod url;
