//! What goes over the wire as values, and how it is written.

pub(crate) mod ahead;
pub(crate) mod call;
pub(crate) mod entry;
pub(crate) mod keys;
pub(crate) mod messages;
pub(crate) mod trouble;
