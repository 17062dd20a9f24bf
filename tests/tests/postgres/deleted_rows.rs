//! Rows of locks that somebody deletes: what was held is forgotten, and waiters are served.
//!
//! Section: postgres.md#what-it-promises

use tests::{LONG, SCHEMA, TIME_LIMIT, poll_once, release, take, within};

use crate::{manager, server, waiter};

/// A reader that renews nothing hears of it as a writer does, and asserts nothing any more.
#[tokio::test]
async fn readers_hear_of_it_too() {
    let Some(server) = server().await else { return };
    let locks = manager(&server.url()).await;
    let reader = locks.lock("key").read().renew(false).ttl(LONG);
    let reader = within(TIME_LIMIT, reader.acquire()).await.unwrap();
    server.cmd(&format!("TRUNCATE {SCHEMA}.lock")).await;
    let writer = take(&locks, "key", LONG).await;
    let fence = reader.fencing_token();
    let asserts = format!("SELECT {SCHEMA}.assert_fence('key', {fence})");
    let asserted = server.peer().await.try_rows(&asserts).await;
    assert!(asserted.is_err(), "{asserted:?}");
    within(TIME_LIMIT, reader.lost()).await;
    release(writer).await;
}

#[tokio::test]
async fn holders_hear_of_rows_that_were_deleted_and_waiters_are_served_in_order() {
    let Some(server) = server().await else { return };
    let [ours, theirs] = [manager(&server.url()).await, manager(&server.url()).await];
    for delete in ["TRUNCATE", "DELETE FROM"] {
        let guard = take(&ours, "key", LONG).await;
        let [first, mut second] = [waiter(&theirs).await, waiter(&ours).await];
        server.cmd(&format!("{delete} {SCHEMA}.lock")).await;
        within(TIME_LIMIT, guard.lost()).await;
        let first = within(TIME_LIMIT, first).await.unwrap();
        assert!(poll_once(&mut second).await.is_pending(), "two holders");
        assert!(first.fencing_token() > guard.fencing_token());
        release(first).await;
        release(within(TIME_LIMIT, second).await.unwrap()).await;
    }
}
