//! The connection to a server, for every store that has one. A store adds its handshake and
//! its framing.

pub(crate) mod backoff;
pub(crate) mod connection;
pub(crate) mod endpoint;
pub(crate) mod logins;
pub(crate) mod probe;
pub(crate) mod ready;
mod silence;
pub(crate) mod stream;
#[cfg(feature = "tls")]
pub(crate) mod tls;
