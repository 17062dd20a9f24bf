//! The protocols as models that are searched to the end: [`queue`] for docs/protocol.md, [`ordered`] for docs/etcd.md
//! and docs/zookeeper.md.

#[cfg(feature = "search")]
mod fair;
#[cfg(feature = "search")]
pub mod ordered;
pub mod queue;
#[cfg(feature = "search")]
pub mod scenarios;
