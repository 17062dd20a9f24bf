//! What is compared: this project's locks, the ceiling, and other libraries, behind one interface.

mod async_redis_lock;
mod ceiling;
mod distributed_lock;
mod locks;
mod name;
mod ours;
mod rlock;
mod rslock;

pub(crate) use self::async_redis_lock::AsyncRedisLock;
pub(crate) use self::ceiling::Ceiling;
pub(crate) use self::distributed_lock::DistributedLock;
pub(crate) use self::locks::Locks;
pub(crate) use self::name::System;
pub(crate) use self::ours::{Alone, Detached, Ours, Readers};
pub(crate) use self::rlock::Rlock;
pub(crate) use self::rslock::Rslock;
