//! Sockets, for every store that connects to a server.

pub(crate) mod stream;
#[cfg(feature = "tls")]
pub(crate) mod tls;
