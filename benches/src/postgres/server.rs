//! The server, whose commits wait for the disk or do not.

use support::{PostgresPeer, PostgresServer};

use crate::sql::database::Database;
use crate::systems;

const TEST: &str = "make bench-postgres";

pub(super) struct Server {
    pub(super) database: Database,
    process: PostgresServer,
}

impl Server {
    /// Starts one with the tables of all systems; `None`, with a notice, where it cannot be had.
    pub(super) async fn start(disk: bool) -> Option<Self> {
        let on_off = if disk { "on" } else { "off" };
        let server = PostgresServer::builder()
            .option("fsync", on_off)
            .option("full_page_writes", on_off)
            .option("max_connections", "600")
            .option("shared_buffers", "128MB")
            .option("max_wal_size", "4GB")
            .start(TEST)
            .await?;
        systems::postgres::install(&server.url()).await;
        let case = if disk {
            "PostgreSQL, fsync"
        } else {
            "PostgreSQL, no fsync"
        };
        let database = Database {
            case,
            disk,
            url: server.url(),
            pid: server.pid(),
        };
        Some(Self {
            database,
            process: server,
        })
    }

    pub(super) async fn peer(&self) -> PostgresPeer {
        self.process.peer().await
    }

    pub(super) async fn version(&self) -> String {
        let version = self.peer().await.value("SHOW server_version").await;
        version.split(' ').next().unwrap_or_default().to_owned()
    }
}
