//! ZooKeeper's protocol as values: requests, replies, and the paths of its nodes.

pub(crate) mod connect;
pub(crate) mod entry;
mod jute;
pub(crate) mod op;
pub(crate) mod paths;
pub(crate) mod reply;
