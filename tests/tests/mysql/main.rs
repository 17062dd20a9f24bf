//! Promise: locks on MySQL and MariaDB outlive what happens to their servers, and nobody holds one beside another.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use lock_runtime::{LockError, LockManager};
use tests::{MysqlServer, TIME_LIMIT, within};

mod connections;
mod fencing;
mod refused;
mod restarts;
mod rows;

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
