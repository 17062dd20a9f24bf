//! The connection to a server, for every store that has one. A store adds its handshake and
//! its framing.
#![cfg_attr(
    not(all(
        feature = "etcd",
        feature = "mysql",
        feature = "postgres",
        feature = "redis",
        feature = "zookeeper",
        feature = "tls"
    )),
    allow(dead_code, reason = "each store uses a part")
)]

pub(crate) mod backoff;
pub(crate) mod connection;
pub(crate) mod distrust;
pub(crate) mod endpoint;
pub(crate) mod logins;
pub(crate) mod ready;
pub(crate) mod silence;
pub(crate) mod stream;
#[cfg(feature = "tls")]
pub(crate) mod tls;
