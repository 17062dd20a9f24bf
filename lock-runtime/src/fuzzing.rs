//! The doors of `fuzz/` to what reads bytes of servers. Compiled for fuzzing alone.
#![allow(missing_docs, clippy::missing_panics_doc)]

pub use crate::backend::etcd::fuzzing::{http2, messages};
pub use crate::backend::mysql::fuzzing::answers as mysql_answers;
pub use crate::backend::postgres::fuzzing::answers as postgres_answers;
pub use crate::backend::redis::fuzzing::{pushes, queue, replies};
pub use crate::backend::zookeeper::fuzzing::packets;
