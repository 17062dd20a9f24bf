//! The connections to the members: sockets, gRPC, and the links that keep them up.

mod channel;
pub(crate) mod dial;
mod link;
pub(crate) mod links;
