//! A connection to the server: sockets, the wire, and the link that keeps one up.

mod connect;
pub(crate) mod link;
mod login;
mod stream;
mod wire;

pub(crate) use connect::{Dialer, Push};
