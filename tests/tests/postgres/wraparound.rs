//! Servers that have nearly run out of transaction IDs, and warn of that beside each answer.
//!
//! Section: postgres.md#what-it-promises

use tests::{LONG, PostgresServer, TIME_LIMIT, release, take, within};

use crate::{manager, waiter};

#[tokio::test]
async fn locks_are_granted_while_the_server_warns_that_transaction_ids_run_out() {
    let builder = PostgresServer::builder().option("autovacuum_naptime", "2147483");
    let Some(mut server) = builder.start("tests/postgres").await else {
        return;
    };
    let before = manager(&server.url()).await;
    release(take(&before, "key", LONG).await).await;
    server.use_up_transaction_ids().await;
    let [ours, theirs] = [manager(&server.url()).await, manager(&server.url()).await];
    let guard = take(&ours, "key", LONG).await;
    let next = waiter(&theirs).await;
    release(guard).await;
    release(within(TIME_LIMIT, next).await.unwrap()).await;
    // A check of the test.
    let mut peer = server.peer().await;
    let frozen = "SELECT max(age(datfrozenxid)) > 2107483647 FROM pg_database";
    assert_eq!(peer.value(frozen).await, "t", "the server did not warn");
}
