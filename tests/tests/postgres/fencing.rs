//! Holders that stop past their leases in the middle of a transaction: with `assert_fence`, no balance loses a change.
//!
//! Section: postgres.md#fencing-your-transactions

use std::time::Duration;

use lock_runtime::LockConfig;
use tests::{
    LONG, PostgresServer, SCHEMA, TIME_LIMIT, connect, late_holders, release, take, within,
};
use tokio::time::timeout;

/// Longer than an unlocked lock needs to be granted.
const WHILE: Duration = Duration::from_millis(700);

async fn stops(times: usize) {
    let Some(server) = crate::server().await else {
        return;
    };
    late_holders::commit_nothing(&server.url(), env!("CARGO_BIN_EXE_worker"), times).await;
}

#[tokio::test]
async fn a_late_holder_commits_nothing_beside_the_next_one() {
    stops(1).await;
}

#[tokio::test]
#[ignore = "takes a minute: `make crashes`"]
async fn a_thousand_late_holders_commit_nothing_beside_the_next_ones() {
    stops(17).await;
}

/// The state of a transaction that a coordinator has prepared outlives restarts, and so does its guard.
#[tokio::test]
async fn a_prepared_transaction_keeps_everybody_out_until_it_has_ended() {
    let builder = PostgresServer::builder().option("max_prepared_transactions", "1");
    let Some(mut server) = builder.start("tests/postgres").await else {
        return;
    };
    let config = || LockConfig::new(server.url()).unwrap();
    let locks = connect(config().unavailable_wait_forever()).await;
    let guard = take(&locks, "key", LONG).await;
    let assert = format!(
        "BEGIN; SELECT {SCHEMA}.assert_fence('key', {})",
        guard.fencing_token()
    );
    let mut user = server.peer().await;
    user.rows(&assert).await;
    user.rows("PREPARE TRANSACTION 'late'").await;
    assert!(guard.release_confirmed().await.unwrap());
    server.restart_cleanly().await;
    let next = locks.lock("key").ttl(LONG).wait_forever();
    let mut next = tokio::spawn(next.acquire());
    let refused = timeout(WHILE, &mut next).await;
    assert!(refused.is_err(), "two holders: {refused:?}");
    server.cmd("COMMIT PREPARED 'late'").await;
    release(within(TIME_LIMIT, next).await.unwrap().unwrap()).await;
}

#[tokio::test]
async fn a_standby_asserts_nothing() {
    let Some(server) = crate::server().await else {
        return;
    };
    let standby = server.standby().await;
    let locks = connect(&*server.url()).await;
    let guard = take(&locks, "key", LONG).await;
    server.is_copied_to(&standby).await;
    let assert = format!(
        "SELECT {SCHEMA}.assert_fence('key', {})",
        guard.fencing_token()
    );
    server.peer().await.rows(&assert).await;
    let refused = standby.peer().await.try_rows(&assert).await.unwrap_err();
    assert_eq!(refused.code, "25006");
    assert!(refused.message.contains("standby"), "{refused}");
}
