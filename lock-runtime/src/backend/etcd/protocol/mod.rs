//! The messages of etcd as values, and their encoding.

pub(crate) mod ahead;
pub(crate) mod call;
pub(crate) mod entry;
pub(crate) mod keys;
pub(crate) mod messages;
pub(crate) mod notes;
pub(crate) mod trouble;
