//! Servers that crash, and standbys that are promoted, again and again under load: no lock is granted twice, unless nothing
//! protects it.
//!
//! Section: postgres.md#what-it-promises

use std::fmt;

use tests::{
    Fate, PostgresPair, PostgresServer, TIME_LIMIT, connect,
    crashes::{Crashing, LEASE, none_is_granted_twice, some_are_granted_twice},
    eventually,
};

const TEST: &str = "tests/postgres";
const WORKER: &str = env!("CARGO_BIN_EXE_worker");

/// What keeps a lock from being granted twice.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Protection {
    Nothing,
    /// Grants wait for the disk.
    Disk,
    Quarantine,
    /// Grants wait for the standby.
    Standby,
}

/// What crashes.
enum Servers {
    One(Box<PostgresServer>, Protection),
    Pair(Box<PostgresPair>, Protection),
}

impl Servers {
    async fn one(protection: Protection) -> Option<Self> {
        let server = PostgresServer::start(TEST).await?;
        if protection == Protection::Nothing {
            // Grants that do not wait for the disk are refused without a quarantine.
            connect(&*server.url()).await.shutdown().await;
            let none = "CREATE OR REPLACE FUNCTION lock_runtime.quarantine_left(longest int) RETURNS bigint \
                        LANGUAGE sql AS 'SELECT 0::bigint'";
            server.cmd(none).await;
        }
        Some(Self::One(Box::new(server), protection))
    }

    async fn pair(protection: Protection) -> Option<Self> {
        let pair = match protection {
            Protection::Standby => PostgresPair::start_synchronous(TEST).await?,
            _ => PostgresPair::start(TEST).await?,
        };
        Some(Self::Pair(Box::new(pair), protection))
    }

    fn protection(&self) -> Protection {
        match self {
            Self::One(_, it) | Self::Pair(_, it) => *it,
        }
    }
}

impl fmt::Debug for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.protection().fmt(f)
    }
}

impl Crashing for Servers {
    fn url(&self) -> String {
        let lease = format!("ttl={}ms", LEASE.as_millis());
        let quarantine = format!("quarantine={}ms", LEASE.as_millis());
        match self {
            Self::One(server, Protection::Disk) => format!("{}?{lease}", server.url()),
            Self::One(server, _) => {
                format!("{}?{lease}&{quarantine}&commit=async", server.url())
            }
            Self::Pair(pair, Protection::Quarantine) => {
                format!("{}?{lease}&{quarantine}", pair.url())
            }
            Self::Pair(pair, Protection::Standby) => format!("{}?{lease}&replicas=1", pair.url()),
            Self::Pair(pair, _) => format!("{}?{lease}", pair.url()),
        }
    }

    fn is_quarantined(&self) -> bool {
        self.protection() == Protection::Quarantine
    }

    /// In every second round, the standby does not hear of what is granted from now on.
    async fn prepare(&mut self, round: usize) {
        let Self::Pair(pair, _) = self else { return };
        if round.is_multiple_of(2) {
            let standby = 1 - pair.place();
            pair.server_mut(standby).stop();
            let connected = "SELECT pg_terminate_backend(pid) FROM pg_stat_replication";
            let is_alone = async || pair.primary().cmd(connected).await.is_empty();
            eventually(TIME_LIMIT, is_alone).await;
        }
    }

    async fn strike(&mut self) {
        match self {
            Self::One(server, _) => server.restart().await,
            Self::Pair(pair, _) => {
                let (primary, standby) = (pair.place(), 1 - pair.place());
                pair.server_mut(primary).kill().await;
                pair.server_mut(standby).resume();
                pair.fail_over(Fate::Killed).await;
            }
        }
    }

    async fn mend(&mut self) {
        if let Self::Pair(pair, _) = self {
            pair.mend().await;
        }
    }
}

#[tokio::test]
#[ignore = "takes minutes: `make crashes`"]
async fn crashes_forget_no_grant_that_is_on_disk() {
    none_is_granted_twice(Servers::one(Protection::Disk).await, WORKER).await;
}

#[tokio::test]
#[ignore = "takes minutes: `make crashes`"]
async fn crashes_forget_grants_whose_leases_end_in_the_quarantine() {
    none_is_granted_twice(Servers::one(Protection::Quarantine).await, WORKER).await;
}

#[tokio::test]
#[ignore = "takes minutes: `make crashes`"]
async fn crashes_without_protection_grant_locks_twice() {
    some_are_granted_twice(Servers::one(Protection::Nothing).await, WORKER).await;
}

#[tokio::test]
#[ignore = "takes minutes: `make crashes`"]
async fn promoted_standbys_know_every_grant_that_they_confirmed() {
    none_is_granted_twice(Servers::pair(Protection::Standby).await, WORKER).await;
}

#[tokio::test]
#[ignore = "takes minutes: `make crashes`"]
async fn promoted_standbys_forget_grants_whose_leases_end_in_the_quarantine() {
    none_is_granted_twice(Servers::pair(Protection::Quarantine).await, WORKER).await;
}

#[tokio::test]
#[ignore = "takes minutes: `make crashes`"]
async fn promoted_standbys_without_protection_grant_locks_twice() {
    some_are_granted_twice(Servers::pair(Protection::Nothing).await, WORKER).await;
}
