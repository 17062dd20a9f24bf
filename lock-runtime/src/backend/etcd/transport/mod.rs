//! The connections to the members: sockets, gRPC, and the links that keep them up.

mod channel;
pub(crate) mod dial;
mod link;
pub(crate) mod links;

#[cfg(fuzzing)]
pub use channel::fuzzing::http2;
#[cfg(fuzzing)]
pub(super) use channel::fuzzing::messages_of;
