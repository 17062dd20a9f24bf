//! A server of MariaDB under torture.

use std::{net::SocketAddr, time::Duration};

use tokio::time::sleep;

use super::{
    Profile,
    fault::about_a_lease,
    history::monotonic,
    store::{Doing, Fleet},
    transfers,
};
use crate::{MysqlPeer, MysqlServer, TIME_LIMIT, eventually};

/// How often something is done again while it lasts.
const AGAIN: Duration = Duration::from_millis(3);
/// The size of the disk of a server that is filled, in MB.
const DISK: u32 = 192;
/// As long as a change of a schema may take.
const LONG: Duration = Duration::from_secs(2);

/// The server, and what the profile has beside it.
#[derive(Debug)]
pub(super) struct Site {
    server: MysqlServer,
    /// A transaction that sees nothing of what happens meanwhile, for which old versions of rows are kept.
    _snapshot: Option<MysqlPeer>,
}

impl Site {
    pub(super) async fn start(test: &str, profile: Profile) -> Option<Self> {
        let builder = match profile {
            Profile::FullDisk => MysqlServer::builder().disk(DISK),
            Profile::Connections => MysqlServer::builder().option("--max-connections=60"),
            Profile::Clock | Profile::ClockForward => MysqlServer::builder().moved_clock(test),
            _ => MysqlServer::builder(),
        };
        let server = builder.start(test).await?;
        if profile == Profile::ClockForward {
            transfers::open_accounts(&server.url()).await;
        }
        let snapshot = match profile {
            Profile::Clients => Some(snapshot(&server).await),
            _ => None,
        };
        Some(Self {
            server,
            _snapshot: snapshot,
        })
    }

    /// Whether its clock can be moved.
    pub(super) fn has_clock(&self) -> bool {
        self.server.has_clock()
    }

    /// Its clock is ahead of the machine's by so much from now on.
    pub(super) fn set_clock(&self, ahead: Duration) {
        self.server.set_clock(ahead);
    }
}

async fn snapshot(server: &MysqlServer) -> MysqlPeer {
    let mut peer = server.peer().await;
    peer.rows("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ; START TRANSACTION WITH CONSISTENT SNAPSHOT")
        .await;
    peer
}

/// Does something to the connections of managers, or to the whole server.
pub(super) async fn connections(Site { server, .. }: &mut Site) -> &'static str {
    match fastrand::u8(..8) {
        0 => {
            server.kill_connections("").await;
            "connections killed"
        }
        1 => {
            let end = monotonic() + about_a_lease();
            while monotonic() < end {
                server.kill_connections("QUERY").await;
                sleep(AGAIN).await;
            }
            "statements cancelled"
        }
        2 => {
            server.restart().await;
            "servers killed"
        }
        3 => {
            server.restart_cleanly().await;
            "servers restarted"
        }
        4 => {
            lock(
                server,
                "LOCK TABLES lock_runtime_lock WRITE, lock_runtime_waiter WRITE",
            )
            .await;
            "tables locked"
        }
        5 => {
            lock(server, "FLUSH TABLES WITH READ LOCK").await;
            "writes locked"
        }
        6 => {
            lock(
                server,
                "BEGIN; SELECT count(*) FROM lock_runtime_lock FOR UPDATE",
            )
            .await;
            "rows locked"
        }
        _ => {
            use_up(server).await;
            "connections used up"
        }
    }
}

/// The disk of the server has no room for a while. Where the server has ended over that, it is started again.
pub(super) async fn full_disk(Site { server, .. }: &mut Site) -> &'static str {
    server.fill_disk();
    sleep(2 * about_a_lease()).await;
    server.clear_disk();
    if server.is_up().await {
        return "disks filled";
    }
    server.restart().await;
    "servers ended by full disks"
}

/// Has others wait, as a change of the schema, a backup or a forgotten transaction does.
async fn lock(server: &MysqlServer, sql: &str) {
    let mut peer = server.peer().await;
    // It is chosen to end a deadlock, now and then.
    if peer.try_rows(sql).await.is_ok() {
        sleep(if fastrand::bool() {
            LONG
        } else {
            about_a_lease()
        })
        .await;
    }
    let _ = peer.try_rows("ROLLBACK; UNLOCK TABLES").await;
}

/// Opens all connections that the server has left, and ends those of managers.
async fn use_up(server: &MysqlServer) {
    let mut peer = server.peer().await;
    let mut opened = Vec::new();
    let end = monotonic() + about_a_lease();
    while monotonic() < end {
        MysqlServer::kill_others(&mut peer, "").await;
        while let Ok(more) = MysqlPeer::try_connect(server.addr(), "root", "mysql").await {
            opened.push(more);
        }
        sleep(AGAIN).await;
    }
}

impl Fleet for Site {
    fn addresses(&self) -> Vec<SocketAddr> {
        vec![self.server.addr()]
    }

    fn stop(&mut self, _server: usize) {
        self.server.stop();
    }

    fn resume(&mut self, _server: usize) {
        self.server.resume();
    }

    fn leader(&mut self) -> Doing<'_, usize> {
        Box::pin(async { 0 })
    }

    fn witnesses(&self, _leader: usize) -> Vec<usize> {
        Vec::new()
    }

    fn cut_off<'a>(&'a mut self, _servers: &'a [usize]) -> Doing<'a, ()> {
        panic!("a server without peers")
    }

    fn rejoin<'a>(&'a mut self, _servers: &'a [usize]) -> Doing<'a, ()> {
        panic!("nobody was cut off")
    }

    fn replace(&mut self, _leader: usize) -> Doing<'_, ()> {
        panic!("a server without peers")
    }

    fn blind(&mut self, _witness: usize) {
        panic!("a server without peers")
    }

    fn see(&mut self, _witness: usize) {
        panic!("a server without peers")
    }

    fn settled(&mut self) -> Doing<'_, ()> {
        Box::pin(async {
            eventually(TIME_LIMIT, async || self.server.is_up().await).await;
        })
    }

    fn left_behind(&mut self) -> Doing<'_, Vec<String>> {
        // Waiters of clients that are gone leave the queue when its lock is asked for.
        Box::pin(async {
            let mut left = self.server.peer().await.traces().await;
            left.retain(|it| !it.starts_with("waiter "));
            left
        })
    }
}
