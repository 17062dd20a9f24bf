//! What is compared: this project's locks, the ceiling, and other libraries, behind one interface.

mod async_redis_lock;
mod ceiling;
mod distributed_lock;
#[cfg(any(feature = "postgres", feature = "mysql"))]
mod each;
#[cfg(feature = "stores")]
mod etcd_client;
mod locks;
#[cfg(feature = "mysql")]
pub(crate) mod mysql;
mod name;
mod ours;
#[cfg(feature = "postgres")]
pub(crate) mod postgres;
mod rlock;
mod rslock;
#[cfg(feature = "stores")]
mod zookeeper_client;

pub(crate) use self::async_redis_lock::AsyncRedisLock;
pub(crate) use self::ceiling::Ceiling;
pub(crate) use self::distributed_lock::DistributedLock;
#[cfg(any(feature = "postgres", feature = "mysql"))]
pub(crate) use self::each::Each;
#[cfg(feature = "stores")]
pub(crate) use self::etcd_client::EtcdClient;
pub(crate) use self::locks::Locks;
pub(crate) use self::name::System;
pub(crate) use self::ours::{Alone, Detached, Ours, Readers};
pub(crate) use self::rlock::Rlock;
pub(crate) use self::rslock::Rslock;
#[cfg(feature = "stores")]
pub(crate) use self::zookeeper_client::ZooKeeperClient;
