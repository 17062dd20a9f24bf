//! A primary of PostgreSQL, its standby, and a pooler under torture.

use std::{net::SocketAddr, time::Duration};

use tokio::time::sleep;

use super::{
    Profile, Protection,
    fault::about_a_lease,
    history::monotonic,
    store::{Doing, Fleet},
    transfers,
};
use crate::{
    Fate, PgBouncer, PostgresPair, PostgresPeer, PostgresServer, SCHEMA, TIME_LIMIT, eventually,
};

const SERVERS: usize = 2;

/// How often statements are cancelled while they are.
const CANCEL_EVERY: Duration = Duration::from_millis(3);

/// The size of the disks of servers that are filled, in MB.
const DISK: u32 = 256;

/// The servers, and what the profile has beside them.
#[derive(Debug)]
pub(super) struct Site {
    pair: PostgresPair,
    /// In front of the primary.
    pooler: Option<PgBouncer>,
    /// A transaction that sees nothing of what happens meanwhile, for which old versions of rows are kept.
    _snapshot: Option<PostgresPeer>,
}

impl Site {
    /// Starts servers of which the standby has everything that was confirmed, if the profile depends on that.
    pub(super) async fn start(test: &str, profile: Profile) -> Option<Self> {
        let pair = match profile {
            Profile::Failover(Protection::Replicas) => {
                PostgresPair::start_synchronous(test).await?
            }
            Profile::FullDisk => {
                PostgresPair::start_with(test, PostgresServer::builder().disk(DISK)).await?
            }
            Profile::Clock | Profile::ClockForward => {
                let builder = PostgresServer::builder().moved_clock(test);
                PostgresPair::start_with(test, builder).await?
            }
            _ => PostgresPair::start(test).await?,
        };
        let pooler = match profile {
            Profile::Pooler => Some(PgBouncer::start(test, pair.primary()).await?),
            _ => None,
        };
        let snapshot = match profile {
            Profile::Clients => Some(snapshot(pair.primary()).await),
            _ => None,
        };
        if profile == Profile::ClockForward {
            transfers::open_accounts(&pair.primary().url()).await;
        }
        Some(Self {
            pair,
            pooler,
            _snapshot: snapshot,
        })
    }
}

impl Site {
    /// Whether its clock can be moved.
    pub(super) fn has_clock(&self) -> bool {
        self.pair.primary().has_clock()
    }

    /// Its clock is ahead of the machine's by so much from now on.
    pub(super) fn set_clock(&self, ahead: Duration) {
        self.pair.primary().set_clock(ahead);
    }
}

async fn snapshot(server: &PostgresServer) -> PostgresPeer {
    let mut peer = server.peer().await;
    peer.rows("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class")
        .await;
    peer
}

/// Does something to the connections of managers, or to the whole primary.
pub(super) async fn connections(Site { pair, .. }: &mut Site) -> &'static str {
    match fastrand::u8(..7) {
        0 => {
            pair.primary().terminate_all().await;
            "connections terminated"
        }
        1 => {
            cancel(pair.primary()).await;
            "statements cancelled"
        }
        2 => {
            let backends = pair.primary().backends().await;
            if let Some(pid) = fastrand::choice(backends) {
                pair.primary().kill_backend(pid).await;
            }
            "backends killed"
        }
        3 => {
            let place = pair.place();
            pair.server_mut(place).restart().await;
            "servers killed"
        }
        4 => {
            let place = pair.place();
            pair.server_mut(place).restart_cleanly().await;
            "servers restarted"
        }
        5 => {
            lock_tables(pair.primary()).await;
            "tables locked"
        }
        _ => {
            use_up(pair.primary()).await;
            "connections used up"
        }
    }
}

/// Does something to the pooler, or to the server behind it.
pub(super) async fn pooler(Site { pair, pooler, .. }: &mut Site) -> &'static str {
    let pooler = pooler.as_mut().expect("the profile has one");
    match fastrand::u8(..5) {
        0 | 1 => {
            pooler.restart().await;
            "poolers restarted"
        }
        2 => {
            pooler.stop();
            sleep(about_a_lease()).await;
            pooler.resume();
            "poolers stopped"
        }
        3 => {
            pair.primary().terminate_all().await;
            "connections terminated"
        }
        _ => {
            let place = pair.place();
            pair.server_mut(place).restart().await;
            "servers killed"
        }
    }
}

/// The disk of the primary has no room for a while. Where the server has ended over that, it is started again.
pub(super) async fn full_disk(Site { pair, .. }: &mut Site) -> &'static str {
    let place = pair.place();
    let server = pair.server_mut(place);
    server.fill_disk();
    sleep(2 * about_a_lease()).await;
    server.clear_disk();
    if server.is_up().await {
        return "disks filled";
    }
    server.restart().await;
    "servers ended by full disks"
}

/// The standby takes the place of the primary, which ends and comes back as its standby.
pub(super) async fn fail_over(
    Site { pair, .. }: &mut Site,
    protection: Protection,
) -> &'static str {
    // Unless it waits for its standby, an old primary that lives on goes on granting locks.
    let fates = match protection {
        Protection::Quarantine => 3,
        Protection::None | Protection::Replicas => 4,
    };
    let name = match fastrand::u8(..fates) {
        0 => {
            pair.fail_over(Fate::Killed).await;
            "primaries killed"
        }
        1 => {
            pair.fail_over(Fate::ShutDown).await;
            "primaries shut down"
        }
        2 => {
            let place = pair.place();
            pair.server_mut(place).stop();
            sleep(about_a_lease()).await;
            pair.fail_over(Fate::Killed).await;
            "primaries stopped"
        }
        _ => {
            pair.fail_over(Fate::LeftAlive).await;
            "primaries left alive"
        }
    };
    sleep(about_a_lease()).await;
    pair.mend().await;
    name
}

/// Cancels whatever runs, again and again.
async fn cancel(server: &PostgresServer) {
    let mut peer = server.peer().await;
    let end = monotonic() + about_a_lease();
    while monotonic() < end {
        peer.rows(
            "SELECT pg_cancel_backend(pid) FROM pg_stat_activity \
             WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()",
        )
        .await;
        sleep(CANCEL_EVERY).await;
    }
}

/// Locks the tables as a change of the schema does.
async fn lock_tables(server: &PostgresServer) {
    let mut peer = server.peer().await;
    let lock = format!("BEGIN; LOCK TABLE {SCHEMA}.lock, {SCHEMA}.waiter IN ACCESS EXCLUSIVE MODE");
    // It is chosen to end a deadlock, now and then.
    if peer.try_rows(&lock).await.is_ok() {
        sleep(about_a_lease()).await;
    }
    let _ = peer.try_rows("ROLLBACK").await;
}

/// Opens all connections that the server has left, and ends those of managers.
async fn use_up(server: &PostgresServer) {
    let mut peer = server.peer().await;
    let mut opened = Vec::new();
    let own = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
               WHERE backend_type = 'client backend' AND application_name <> '' AND pid <> pg_backend_pid()";
    let end = monotonic() + about_a_lease();
    while monotonic() < end {
        peer.rows(own).await;
        while let Ok(more) = PostgresPeer::try_connect(server.addr(), "postgres", "postgres").await
        {
            opened.push(more);
        }
        sleep(CANCEL_EVERY).await;
    }
}

impl Fleet for Site {
    fn addresses(&self) -> Vec<SocketAddr> {
        match &self.pooler {
            Some(pooler) => vec![pooler.addr()],
            None => self.pair.addresses().into(),
        }
    }

    fn stop(&mut self, server: usize) {
        self.pair.server_mut(server).stop();
    }

    fn resume(&mut self, server: usize) {
        self.pair.server_mut(server).resume();
    }

    fn leader(&mut self) -> Doing<'_, usize> {
        Box::pin(async { self.pair.place() })
    }

    fn witnesses(&self, leader: usize) -> Vec<usize> {
        vec![SERVERS - 1 - leader]
    }

    fn cut_off<'a>(&'a mut self, _servers: &'a [usize]) -> Doing<'a, ()> {
        panic!("a standby does not take the place of a primary by itself")
    }

    fn rejoin<'a>(&'a mut self, _servers: &'a [usize]) -> Doing<'a, ()> {
        panic!("nobody was cut off")
    }

    fn replace(&mut self, _leader: usize) -> Doing<'_, ()> {
        Box::pin(async {
            fail_over(self, Protection::None).await;
        })
    }

    fn blind(&mut self, witness: usize) {
        self.pair.server_mut(witness).stop();
    }

    fn see(&mut self, witness: usize) {
        self.pair.server_mut(witness).resume();
    }

    fn settled(&mut self) -> Doing<'_, ()> {
        Box::pin(async {
            eventually(TIME_LIMIT, async || self.pair.primary().is_up().await).await;
        })
    }

    fn left_behind(&mut self) -> Doing<'_, Vec<String>> {
        // Waiters of clients that are gone leave the queue when its lock is asked for.
        Box::pin(async {
            let mut left = self.pair.primary().traces(SCHEMA).await;
            left.retain(|it| !it.starts_with("waiter "));
            left
        })
    }
}
