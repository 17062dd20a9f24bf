//! Values for all floors above: names and kinds of locks, terms, errors.

pub(crate) mod answer;
pub(crate) mod authority;
pub(crate) mod credentials;
pub(crate) mod crowd;
pub(crate) mod deadline;
pub(crate) mod duration;
pub(crate) mod enclosing;
pub(crate) mod error;
pub(crate) mod fence;
pub(crate) mod finding;
pub(crate) mod graph;
pub(crate) mod health;
pub(crate) mod history;
pub(crate) mod holder;
pub(crate) mod into_key;
pub(crate) mod key;
pub(crate) mod keys;
pub(crate) mod kind;
pub(crate) mod leader;
pub(crate) mod overview;
pub(crate) mod query;
#[cfg(feature = "serde")]
mod serialized;
pub(crate) mod terms;
pub(crate) mod ticket;
pub(crate) mod ticket_id;
#[cfg(feature = "tls")]
pub(crate) mod tls;
#[cfg(feature = "serde")]
pub(crate) mod units;
pub(crate) mod url;
