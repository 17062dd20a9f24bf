//! The stores that locks are tested on, and which tests each of them has to pass.
//!
//! A store joins by a row in [`on_every_store`](crate::on_every_store).

use std::{fmt, future::ready, pin::Pin};

use lock_runtime::{LockConfig, LockManager};

use crate::{RedisServer, RedlockFleet, connect, unique};

/// Makes a test on each store of every function that takes a [`Store`], in a module that is named after the store.
///
/// A test says in brackets which [`Capabilities`](lock_runtime::Capabilities) it needs, as in `readers_share [read]`. A
/// store that lacks one of them has no such test.
#[macro_export]
macro_rules! on_every_store {
    ($($tests:tt)*) => {
        $crate::tests_of_store! {
            ($) on_memory, starts: async { Some($crate::Memory::new()) },
            can: [read downgrade permits take several_keys min_hold list force_release ask history fencing fair max_waiters tickets graph],
            $($tests)*
        }
        $crate::tests_of_store! {
            ($) on_redis, starts: async { Some($crate::RedisServer::start().await) },
            can: [read downgrade permits take several_keys min_hold list force_release ask history fencing fair max_waiters tickets answers graph],
            $($tests)*
        }
        $crate::tests_of_store! {
            ($) on_sentinel, starts: async { Some($crate::SharedSentinels::join().await) },
            can: [read downgrade permits take several_keys min_hold list force_release ask history fencing fair max_waiters tickets answers graph],
            $($tests)*
        }
        $crate::tests_of_store! {
            ($) on_cluster, starts: async { Some($crate::SharedCluster::join().await) },
            can: [read downgrade permits take several_keys min_hold list force_release ask history fencing fair max_waiters tickets answers graph],
            $($tests)*
        }
        $crate::tests_of_store! {
            ($) on_zookeeper, starts: $crate::ZooKeeperHome::start(),
            can: [read downgrade permits take several_keys min_hold list force_release ask fencing fair max_waiters tickets graph],
            $($tests)*
        }
        $crate::tests_of_store! {
            ($) on_etcd, starts: $crate::EtcdServer::start("what runs on every store"),
            can: [read downgrade permits take several_keys min_hold list force_release ask history fencing fair max_waiters tickets graph],
            $($tests)*
        }
        $crate::tests_of_store! {
            ($) on_postgres, starts: $crate::PostgresHome::start(),
            can: [read downgrade permits take several_keys min_hold list force_release ask history fencing fair max_waiters tickets graph],
            $($tests)*
        }
        $crate::tests_of_store! {
            ($) on_pgbouncer, starts: $crate::PostgresHome::start_pooled(),
            can: [read downgrade permits take several_keys min_hold list force_release ask history fencing fair max_waiters tickets graph],
            $($tests)*
        }
        $crate::tests_of_store! {
            ($) on_mysql, starts: $crate::MysqlHome::start(),
            can: [read downgrade permits take several_keys min_hold list force_release ask history fencing fair max_waiters tickets graph],
            $($tests)*
        }
        $crate::tests_of_store! {
            ($) on_redlock, starts: async { Some($crate::RedlockFleet::start().await) },
            can: [read several_keys min_hold list force_release ask fencing answers],
            $($tests)*
        }
        $crate::tests_of_store! {
            ($) on_setnx, starts: async { Some($crate::SetnxServer::start().await) },
            can: [several_keys force_release answers],
            $($tests)*
        }
    };
}

/// Makes the tests of one row, which pass where the store cannot be had. `$d` is a dollar sign, for the macro that
/// chooses among them.
#[doc(hidden)]
#[macro_export]
macro_rules! tests_of_store {
    (
        ($d:tt) $store:ident, starts: $start:expr,
        can: [$($can:ident)*],
        $($test:ident $([$($need:ident)*])?),* $(,)?
    ) => {
        mod $store {
            /// Keeps a test if each of its needs is a word of the row.
            macro_rules! if_it_can {
                ([] $d($d test:tt)*) => { $d($d test)* };
                $(([$can $d($d needs:ident)*] $d($d test:tt)*) => {
                    if_it_can! { [$d($d needs)*] $d($d test)* }
                };)*
                ([$d other:ident $d($d needs:ident)*] $d($d test:tt)*) => {};
            }

            #[allow(dead_code, reason = "where the store can do nothing of what is tested")]
            const CAN: &[&str] = &[$(stringify!($can)),*];

            $(
                // A need that is misspelt does not compile.
                $($(const _: fn(&$crate::Capabilities) -> bool = |can| can.$need;)*)?
                if_it_can! { [$($($need)*)?]
                    #[tokio::test]
                    async fn $test() {
                        if let Some(home) = $start.await {
                            super::$test($crate::Store::new(home, CAN)).await;
                        }
                    }
                }
            )*
        }
    };
}

/// What a store keeps of locks, once it has answered.
pub type Traces<'a> = Pin<Box<dyn Future<Output = Vec<String>> + Send + 'a>>;

/// Where a store keeps its locks during one test; dropping it ends it.
pub trait Home: fmt::Debug + Send + Sync + 'static {
    /// What a manager of the store is configured with.
    fn url(&self) -> String;

    /// What the store keeps of locks, as far as that can be seen.
    fn traces(&self) -> Traces<'_>;
}

/// A name of the test's own for locks in this process, of which nothing can be seen.
#[derive(Debug)]
pub struct Memory(String);

impl Memory {
    /// A store that is empty.
    #[expect(clippy::new_without_default, reason = "each has a name of its own")]
    pub fn new() -> Self {
        Self(unique("store"))
    }
}

impl Home for Memory {
    fn url(&self) -> String {
        format!("memory:{}", self.0)
    }

    fn traces(&self) -> Traces<'_> {
        Box::pin(ready(Vec::new()))
    }
}

impl Home for RedlockFleet {
    fn url(&self) -> String {
        self.url()
    }

    fn traces(&self) -> Traces<'_> {
        Box::pin(self.traces())
    }
}

impl Home for RedisServer {
    fn url(&self) -> String {
        self.url()
    }

    fn traces(&self) -> Traces<'_> {
        Box::pin(self.keys("*{*"))
    }
}

/// A server whose locks are those of the setnx protocol.
#[derive(Debug)]
pub struct SetnxServer(RedisServer);

impl SetnxServer {
    /// One without locks.
    pub async fn start() -> Self {
        Self(RedisServer::start().await)
    }
}

impl Home for SetnxServer {
    fn url(&self) -> String {
        self.0.url().replace("redis://", "redis+setnx://")
    }

    fn traces(&self) -> Traces<'_> {
        Box::pin(self.0.keys("*"))
    }
}

/// A store of the test's own, which any number of managers share.
#[derive(Debug)]
pub struct Store {
    home: Box<dyn Home>,
    can: &'static [&'static str],
}

impl Store {
    /// One that has just started, of a row that says what it can do.
    pub fn new(home: impl Home, can: &'static [&'static str]) -> Self {
        Self {
            home: Box::new(home),
            can,
        }
    }

    /// What its row says that it can do.
    pub fn can(&self) -> &'static [&'static str] {
        self.can
    }

    /// What a manager of this store is configured with.
    pub fn config(&self) -> LockConfig {
        LockConfig::new(self.home.url()).expect("a URL")
    }

    /// One of the processes that share the store, so to speak: a thread, connections and a state of its own.
    pub async fn manager(&self) -> LockManager {
        connect(self.config()).await
    }

    /// What the store keeps of locks, as far as that can be seen.
    pub async fn traces(&self) -> Vec<String> {
        self.home.traces().await
    }
}
