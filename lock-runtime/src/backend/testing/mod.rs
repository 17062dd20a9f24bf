//! What tests put around a store: a network that they break, and a record of what was held.

pub(crate) mod history;
pub(crate) mod network;
