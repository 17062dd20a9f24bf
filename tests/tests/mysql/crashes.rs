//! Servers that crash again and again under load: no lock is granted twice, unless nothing protects it.
//!
//! Section: mysql.md#what-it-promises

use std::fmt;

use tests::{
    MysqlServer, connect,
    crashes::{Crashing, LEASE, none_is_granted_twice, some_are_granted_twice},
};

const WORKER: &str = env!("CARGO_BIN_EXE_worker");

/// What keeps a lock from being granted twice.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Protection {
    Nothing,
    /// Grants wait for the disk.
    Disk,
    Quarantine,
}

/// What crashes.
struct Crashes(MysqlServer, Protection);

impl Crashes {
    async fn of(protection: Protection) -> Option<Self> {
        let mut builder = MysqlServer::builder();
        if protection != Protection::Disk {
            // What the last second has committed is in the memory of the process alone.
            builder = builder.option("--innodb-flush-log-at-trx-commit=0");
        }
        let server = builder.start("tests/mysql").await?;
        if protection == Protection::Nothing {
            let this = Self(server, protection);
            // A server that forgets is refused without a quarantine.
            connect(&*this.url()).await.shutdown().await;
            this.0
                .cmd("DROP PROCEDURE lock_runtime_quarantine_left")
                .await;
            let none = "CREATE PROCEDURE lock_runtime_quarantine_left(IN p_longest BIGINT, OUT p_left BIGINT) SET p_left = 0";
            this.0.cmd(none).await;
            this.0.cmd("FLUSH ENGINE LOGS").await;
            return Some(this);
        }
        Some(Self(server, protection))
    }
}

impl fmt::Debug for Crashes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.1.fmt(f)
    }
}

impl Crashing for Crashes {
    fn url(&self) -> String {
        let lease = LEASE.as_millis();
        let url = format!("{}?ttl={lease}ms", self.0.url());
        match self.1 {
            Protection::Disk => url,
            Protection::Nothing | Protection::Quarantine => format!("{url}&quarantine={lease}ms"),
        }
    }

    fn is_quarantined(&self) -> bool {
        self.1 == Protection::Quarantine
    }

    async fn strike(&mut self) {
        self.0.restart().await;
    }
}

#[tokio::test]
#[ignore = "takes minutes: `make crashes`"]
async fn crashes_forget_no_grant_that_is_on_disk() {
    none_is_granted_twice(Crashes::of(Protection::Disk).await, WORKER).await;
}

#[tokio::test]
#[ignore = "takes minutes: `make crashes`"]
async fn crashes_forget_grants_whose_leases_end_in_the_quarantine() {
    none_is_granted_twice(Crashes::of(Protection::Quarantine).await, WORKER).await;
}

#[tokio::test]
#[ignore = "takes minutes: `make crashes`"]
async fn crashes_without_protection_grant_locks_twice() {
    some_are_granted_twice(Crashes::of(Protection::Nothing).await, WORKER).await;
}
