//! The protocols as models that are searched to the end: [`queue`] for docs/protocol.md, [`ordered`] for docs/etcd.md
//! and docs/zookeeper.md.

mod fair;
pub mod ordered;
pub mod queue;
pub mod scenarios;
