//! A connection to the server: sockets, the wire, and the link that keeps one up.

pub(crate) mod call_source;
pub(crate) mod connect;
pub(crate) mod link;
mod login;
mod prepare;
mod quarantine;
mod replicas;
pub(crate) mod way;
mod wire;

#[cfg(fuzzing)]
pub(super) use quarantine::outer_slots_in;
