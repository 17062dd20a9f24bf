//! The service that the shapes belong to: its types, and its error.

use std::fmt;

use lock_runtime::{LockError, LockManager};

/// What services define once, and use everywhere.
pub(crate) type Result<T, E = ShopError> = std::result::Result<T, E>;

#[derive(Debug)]
pub(crate) enum ShopError {
    Lock(LockError),
    SoldOut,
    NotANumber,
}

impl From<LockError> for ShopError {
    fn from(error: LockError) -> Self {
        Self::Lock(error)
    }
}

impl From<std::num::ParseIntError> for ShopError {
    fn from(_: std::num::ParseIntError) -> Self {
        Self::NotANumber
    }
}

impl fmt::Display for ShopError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lock(error) => error.fmt(f),
            Self::SoldOut => f.write_str("sold out"),
            Self::NotANumber => f.write_str("not a number"),
        }
    }
}

impl std::error::Error for ShopError {}

#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) id: u32,
    pub(crate) tags: Vec<&'static str>,
}

pub(crate) fn lamp() -> Item {
    let tags = vec!["warm", "small"];
    Item { id: 7, tags }
}

#[derive(Clone, Debug)]
pub(crate) struct Shop {
    pub(crate) name: &'static str,
    pub(crate) sold: u32,
}

pub(crate) fn shop() -> Shop {
    Shop {
        name: "berlin",
        sold: 0,
    }
}

/// A service with locks of its own.
pub(crate) struct Service {
    pub(crate) locks: LockManager,
    pub(crate) calls: u32,
}

pub(crate) fn service(locks: &LockManager) -> Service {
    let locks = locks.clone();
    Service { locks, calls: 0 }
}

/// Something to wait for.
pub(crate) async fn pause() {
    tokio::task::yield_now().await;
}
