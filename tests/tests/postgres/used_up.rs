//! Servers that have no connection left.
//!
//! Section: postgres.md#what-it-promises

use std::time::Duration;

use lock_runtime::LockError;
use tests::{LONG, PostgresPeer, PostgresServer, TIME_LIMIT, eventually, release, take, within};
use tokio::time::sleep;

use crate::{manager, refused};

#[tokio::test]
async fn a_manager_without_a_connection_left_says_so_and_others_reconnect_later() {
    let builder = PostgresServer::builder().option("max_connections", "12");
    let Some(server) = builder.start("tests/postgres").await else {
        return;
    };
    let locks = manager(&server.url()).await;
    let guard = take(&locks, "key", LONG).await;
    let mut administrator = server.peer().await;
    let mut others = Vec::new();
    let mut use_up = async || {
        while let Ok(peer) = PostgresPeer::try_connect(server.addr(), "postgres", "postgres").await
        {
            others.push(peer);
        }
    };
    use_up().await;
    match refused(&server.url()).await {
        error @ LockError::Unavailable { .. } => {
            let text = error.to_string();
            assert!(
                text.contains("connections") || text.contains("clients"),
                "{text}"
            );
        }
        error => panic!("{error}"),
    }
    // The manager's own connection is taken by others as soon as it is ended.
    for _ in 0..20 {
        administrator
            .rows(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                 WHERE application_name <> '' AND pid <> pg_backend_pid()",
            )
            .await;
        use_up().await;
        sleep(Duration::from_millis(10)).await;
    }
    eventually(TIME_LIMIT, async || !locks.health().await.connected).await;
    assert!(guard.is_held());
    others.clear();
    let other = within(TIME_LIMIT, locks.lock("other").wait_forever().acquire());
    release(other.await.unwrap()).await;
    release(guard).await;
}
