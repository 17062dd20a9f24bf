//! The surroundings of a store in tests: a network that they break, and a record of held locks.

pub(crate) mod history;
pub(crate) mod network;
mod orders;
