//! How calls are written for Redis, and how its replies are read.

pub(crate) mod batch;
pub(crate) mod call;
pub(crate) mod inspection;
pub(crate) mod names;
pub(crate) mod redirect;
pub(crate) mod reply;
pub(crate) mod scripts;
pub(crate) mod setnx;
pub(crate) mod slot;
pub(crate) mod trouble;
