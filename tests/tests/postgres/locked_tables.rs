//! Tables that somebody locks for a while, as a change of the schema or `VACUUM FULL` does.
//!
//! Section: postgres.md#what-it-promises

use std::time::Duration;

use lock_runtime::{LockConfig, LockError};
use tests::{
    LONG, PostgresPeer, PostgresServer, SCHEMA, TIME_LIMIT, connect, release, take, within,
};
use tokio::{task::JoinSet, time::sleep};

use crate::{are_served_in_order, manager, server, waiter};

const CLOSED: Duration = Duration::from_secs(2);

fn lock_tables() -> String {
    let tables = format!("{SCHEMA}.lock, {SCHEMA}.waiter, {SCHEMA}.sharer");
    format!("BEGIN; LOCK TABLE {tables} IN ACCESS EXCLUSIVE MODE")
}

#[tokio::test]
async fn locks_and_positions_outlive_tables_that_are_locked() {
    let Some(server) = server().await else { return };
    let [ours, theirs] = [manager(&server.url()).await, manager(&server.url()).await];
    let guard = take(&ours, "key", Duration::from_secs(8)).await;
    let waiters = vec![waiter(&theirs).await, waiter(&ours).await];
    let mut peer = server.peer().await;
    peer.rows(&lock_tables()).await;
    let late = theirs.lock("other").wait_forever().acquire();
    let late = tokio::spawn(late);
    sleep(CLOSED).await;
    assert!(!late.is_finished());
    peer.rows("COMMIT").await;
    let other = within(TIME_LIMIT, late).await.unwrap().unwrap();
    release(other).await;
    assert!(guard.is_held());
    are_served_in_order(guard, waiters).await;
}

#[tokio::test]
async fn a_call_that_cannot_be_carried_out_is_unavailable_in_time() {
    let Some(server) = server().await else { return };
    let config = LockConfig::new(server.url()).unwrap();
    let locks = connect(config.unavailable_wait(Duration::from_secs(1))).await;
    release(take(&locks, "key", LONG).await).await;
    let mut peer = server.peer().await;
    peer.rows(&lock_tables()).await;
    let acquire = locks.lock("key").wait_forever().acquire();
    match within(Duration::from_secs(8), acquire).await {
        Err(LockError::Unavailable { .. }) => {}
        other => panic!("{other:?}"),
    }
    peer.rows("COMMIT").await;
    release(take(&locks, "key", LONG).await).await;
}

/// The ttl of a lock whose renewals have to get through while somebody keeps the row of another one. Each call about that one
/// keeps its connection busy for a second, and few go at a time.
const TTL: Duration = Duration::from_secs(12);

/// Somebody keeps the row of the lock `key`, until the end of the transaction.
async fn keeps_row(server: &PostgresServer) -> PostgresPeer {
    let mut peer = server.peer().await;
    let row = "BEGIN; SELECT FROM lock_runtime.lock WHERE name = 'lock:{key}' FOR UPDATE";
    peer.rows(row).await;
    peer
}

/// With a history, each acquire goes by itself.
#[tokio::test]
async fn a_row_that_stays_locked_costs_no_other_lock() {
    let Some(server) = server().await else { return };
    for grants in [0, 3] {
        let config = LockConfig::new(server.url()).unwrap().history(grants);
        let locks = connect(config.unavailable_wait_forever()).await;
        release(take(&locks, "key", LONG).await).await;
        let guard = take(&locks, "other", TTL).await;
        let mut peer = keeps_row(&server).await;
        let mut wanted: JoinSet<_> = (0..30)
            .map(|_| locks.lock("key").ttl(LONG).wait_forever().acquire())
            .collect();
        sleep(TTL + TTL / 4).await;
        assert!(guard.is_held(), "with a history of {grants}");
        assert!(wanted.try_join_next().is_none());
        peer.rows("COMMIT").await;
        while let Some(granted) = within(TIME_LIMIT, wanted.join_next()).await {
            release(granted.unwrap().unwrap()).await;
        }
        release(guard).await;
    }
}

#[tokio::test]
async fn those_who_give_up_on_a_locked_row_cost_no_other_lock() {
    let Some(server) = server().await else { return };
    let locks = manager(&server.url()).await;
    release(take(&locks, "key", LONG).await).await;
    let guard = take(&locks, "other", TTL).await;
    let mut peer = keeps_row(&server).await;
    let mut wanted: JoinSet<_> = (0..30)
        .map(|_| locks.lock("key").ttl(LONG).acquire())
        .collect();
    while let Some(given_up) = within(TIME_LIMIT, wanted.join_next()).await {
        assert!(given_up.unwrap().is_err());
    }
    sleep(TTL + TTL / 4).await;
    assert!(guard.is_held());
    peer.rows("COMMIT").await;
    release(take(&locks, "key", LONG).await).await;
    release(guard).await;
}

#[tokio::test]
async fn readers_whose_row_stays_locked_cost_no_other_lock() {
    let Some(server) = server().await else { return };
    let locks = manager(&server.url()).await;
    let reading = || locks.lock("key").ttl(TTL).read().acquire();
    let mut readers = Vec::new();
    for _ in 0..20 {
        readers.push(within(TIME_LIMIT, reading()).await.unwrap());
    }
    let guard = take(&locks, "other", TTL).await;
    let mut peer = keeps_row(&server).await;
    sleep(TTL + TTL / 4).await;
    assert!(guard.is_held());
    assert!(readers.iter().all(|it| !it.is_held()));
    peer.rows("COMMIT").await;
    drop(readers);
    release(take(&locks, "key", LONG).await).await;
    release(guard).await;
}
