//! Promise: locks on MySQL and MariaDB outlive what happens to their servers, and nobody holds one beside another.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use std::time::Duration;

use lock_runtime::{LockError, LockManager};
use tests::{MysqlPeer, MysqlServer, TIME_LIMIT, within};
use tokio::time::sleep;

mod administrators;
mod batches;
mod connections;
mod crashes;
mod exhausted;
mod fencing;
mod locked_rows;
mod refused;
mod restarts;
mod rows;
mod upkeep;

/// The server of a test; `None`, with a notice, where it cannot be had.
async fn server() -> Option<MysqlServer> {
    MysqlServer::start("tests/mysql").await
}

/// The error of a manager that must not connect.
async fn refused(url: &str) -> LockError {
    let connected = within(TIME_LIMIT, LockManager::connect(url)).await;
    connected.expect_err("it must not connect")
}

/// The sentence of an error that no waiting can mend.
async fn invalid(url: &str) -> String {
    match refused(url).await {
        error @ LockError::InvalidOptions { .. } => error.to_string(),
        error => panic!("{error:?}"),
    }
}

/// A transaction of somebody else that has the row of a lock.
async fn row_of(server: &MysqlServer, key: &str) -> MysqlPeer {
    let mut peer = server.peer().await;
    let sql = format!(
        "START TRANSACTION; SELECT name FROM lock_runtime_lock WHERE name = 'lock:{{{key}}}' FOR UPDATE"
    );
    assert_eq!(peer.column(&sql).await.len(), 1);
    peer
}

/// Longer than InnoDB shows the same list of transactions to those who ask again and again: its list is made anew only
/// for a reader whom nobody preceded by less than 100 ms.
const REFRESHED: Duration = Duration::from_millis(200);

/// Returns when so many transactions wait for a row, soon: the server gives up after a second.
async fn waits_for_a_row(server: &MysqlServer, count: usize) {
    let mut peer = server.peer().await;
    let sql = "SELECT trx_id FROM information_schema.INNODB_TRX WHERE trx_state = 'LOCK WAIT'";
    within(TIME_LIMIT, async {
        while peer.column(sql).await.len() != count {
            sleep(REFRESHED).await;
        }
    })
    .await;
}
