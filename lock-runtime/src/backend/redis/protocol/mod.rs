//! The protocol, as values: calls, replies, pushed messages.

pub(crate) mod batch;
pub(crate) mod call;
pub(crate) mod inspection;
pub(crate) mod kind;
pub(crate) mod line;
pub(crate) mod message;
pub(crate) mod names;
pub(crate) mod redirect;
pub(crate) mod reply;
pub(crate) mod scripts;
pub(crate) mod setnx;
pub(crate) mod slot;
pub(crate) mod trouble;
