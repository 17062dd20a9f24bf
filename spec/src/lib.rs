//! The protocols as models that are searched to the end: [`queue`] for docs/protocol.md, [`ordered`] for docs/etcd.md
//! and docs/zookeeper.md.

pub mod entries;
#[cfg(feature = "search")]
mod fair;
#[cfg(feature = "search")]
pub mod ordered;
pub mod queue;
pub mod revisions;
#[cfg(feature = "search")]
pub mod scenarios;
