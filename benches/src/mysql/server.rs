//! The server, whose commits wait for the disk or do not.

use lock_runtime::LockManager;
use support::MysqlServer;

use crate::sql::database::Database;
use crate::systems::mysql;

const TEST: &str = "make bench-mysql";

pub(super) struct Server {
    pub(super) database: Database,
    process: MysqlServer,
}

impl Server {
    /// Starts one with the tables of all systems; `None`, with a notice, where it cannot be had.
    pub(super) async fn start(disk: bool) -> Option<Self> {
        let method = if disk { "fsync" } else { "nosync" };
        let server = MysqlServer::builder()
            .option(&format!("--innodb-flush-method={method}"))
            .option("--innodb-buffer-pool-size=128M")
            .option("--max-connections=600")
            .start(TEST)
            .await?;
        let url = server.url();
        LockManager::connect(&*url).await.expect("a server");
        mysql::install(&url).await;
        let case = if disk {
            "MySQL, fsync"
        } else {
            "MySQL, no fsync"
        };
        let database = Database {
            case,
            disk,
            url,
            pid: server.pid(),
        };
        Some(Self {
            database,
            process: server,
        })
    }

    /// Such as `MariaDB 10.11.19`.
    pub(super) async fn version(&self) -> String {
        let version = self.process.cmd("SELECT VERSION()").await.remove(0);
        match version.split_once("-MariaDB") {
            Some((number, _)) => format!("MariaDB {number}"),
            None => format!("MySQL {version}"),
        }
    }
}
