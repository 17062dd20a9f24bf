//! What a queue says to a server and hears from it, as plain values: each store writes and
//! reads them in its own way.

pub(crate) mod ahead;
pub(crate) mod call;
pub(crate) mod kind;
pub(crate) mod message;
pub(crate) mod reply;
pub(crate) mod step;
pub(crate) mod trouble;
