//! Tables and rows that somebody locks for a while, as a change of the schema, `VACUUM FULL` or an open transaction does.
//!
//! Section: postgres.md#what-it-promises

use std::time::Duration;

use lock_runtime::{LockConfig, LockError, LockGuard};
use tests::{
    LONG, PostgresPeer, PostgresServer, SCHEMA, TIME_LIMIT, all_get_it, connect, release, take,
    unavailable_to_all, wanted, within,
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

/// The ttl of a lock whose renewals have to get through while somebody keeps the row of another one. A call about that one
/// keeps its connection busy for 0.7 s, or for twice as long if another process waits for the row too; at first there may be
/// three.
const TTL: Duration = Duration::from_secs(8);

/// Somebody keeps the row of this lock, until the end of the transaction.
async fn keeps_row_of(server: &PostgresServer, key: &str) -> PostgresPeer {
    let mut peer = server.peer().await;
    let row =
        format!("BEGIN; SELECT FROM lock_runtime.lock WHERE name = 'lock:{{{key}}}' FOR UPDATE");
    peer.rows(&row).await;
    peer
}

async fn keeps_row(server: &PostgresServer) -> PostgresPeer {
    keeps_row_of(server, "key").await
}

/// With a history, each acquire goes by itself.
#[tokio::test]
async fn a_row_that_stays_locked_costs_no_other_lock() {
    let Some(server) = server().await else { return };
    for grants in [0, 3] {
        let config = LockConfig::new(server.url()).unwrap().history(grants);
        let config = config.unavailable_wait_forever();
        let [ours, theirs] = [connect(config.clone()).await, connect(config).await];
        release(take(&ours, "key", LONG).await).await;
        let guards = [
            take(&ours, "other", TTL).await,
            take(&theirs, "third", TTL).await,
        ];
        let mut peer = keeps_row(&server).await;
        let mut callers = [wanted(&ours, "key", 30), wanted(&theirs, "key", 30)];
        sleep(2 * TTL).await;
        for guard in &guards {
            assert!(guard.is_held(), "with a history of {grants}");
        }
        assert!(callers.iter_mut().all(|it| it.try_join_next().is_none()));
        peer.rows("COMMIT").await;
        for callers in callers {
            all_get_it(callers).await;
        }
        for guard in guards {
            release(guard).await;
        }
    }
}

/// The connection breaks: such a lease cannot wait until it is known that the server is not silent.
#[tokio::test]
async fn a_row_that_stays_locked_costs_no_short_lease() {
    const TTL: Duration = Duration::from_secs(2);
    let Some(server) = server().await else { return };
    let config = LockConfig::new(server.url()).unwrap();
    let config = config.unavailable_wait_forever();
    let [ours, theirs] = [connect(config.clone()).await, connect(config).await];
    release(take(&ours, "key", LONG).await).await;
    let held = take(&ours, "held", 3 * TTL).await;
    let guard = take(&ours, "other", TTL).await;
    let mut peer = keeps_row(&server).await;
    let mut of_held = keeps_row_of(&server, "held").await;
    let callers = [wanted(&ours, "key", 3), wanted(&theirs, "key", 3)];
    sleep(5 * TTL).await;
    assert!(guard.is_held() && !held.is_held());
    peer.rows("COMMIT").await;
    of_held.rows("COMMIT").await;
    for callers in callers {
        all_get_it(callers).await;
    }
    release(guard).await;
}

#[tokio::test]
async fn several_rows_that_stay_locked_cost_no_other_lock() {
    const KEYS: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
    // Calls about all of them, one behind the other, take 4.2 s.
    const TTL: Duration = Duration::from_millis(5_500);
    let Some(server) = server().await else { return };
    let config = LockConfig::new(server.url()).unwrap();
    let locks = connect(config.unavailable_wait_forever()).await;
    let mut peers = Vec::new();
    for key in KEYS {
        release(take(&locks, key, LONG).await).await;
        peers.push(keeps_row_of(&server, key).await);
    }
    let guard = take(&locks, "other", TTL).await;
    // Once one row is known to be kept, each further one costs a call.
    let first = wanted(&locks, "a", 5);
    sleep(CLOSED).await;
    let callers = KEYS.map(|key| wanted(&locks, key, 5));
    sleep(3 * TTL).await;
    assert!(guard.is_held());
    for mut peer in peers {
        peer.rows("COMMIT").await;
    }
    for callers in callers.into_iter().chain([first]) {
        all_get_it(callers).await;
    }
    release(guard).await;
}

#[tokio::test]
async fn a_server_that_waits_for_a_row_is_not_taken_for_silent() {
    let Some(server) = server().await else { return };
    let config = LockConfig::new(server.url()).unwrap();
    let config = config.unavailable_wait_forever();
    let [ours, theirs] = [connect(config.clone()).await, connect(config).await];
    release(take(&ours, "key", LONG).await).await;
    let [mut peer, mut look] = [keeps_row(&server).await, server.peer().await];
    let mut connections = async || {
        look.rows(
            "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' ORDER BY 1",
        )
        .await
    };
    let before = connections().await;
    let callers = [&ours, &theirs].map(|locks| wanted(locks, "key", 3));
    sleep(TTL).await;
    assert_eq!(connections().await, before);
    peer.rows("COMMIT").await;
    for callers in callers {
        all_get_it(callers).await;
    }
}

/// Also to those whose calls wait for others to be answered.
#[tokio::test]
async fn a_row_that_stays_locked_is_unavailable_to_all_who_want_it() {
    let Some(server) = server().await else { return };
    let config = LockConfig::new(server.url()).unwrap().history(3);
    let locks = connect(config.unavailable_wait(Duration::from_secs(1))).await;
    release(take(&locks, "key", LONG).await).await;
    let mut peer = keeps_row(&server).await;
    unavailable_to_all(wanted(&locks, "key", 30)).await;
    peer.rows("COMMIT").await;
    release(take(&locks, "key", LONG).await).await;
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
async fn readers_whose_rows_stay_locked_cost_no_other_lock() {
    const TTL: Duration = Duration::from_secs(10);
    let Some(server) = server().await else { return };
    let locks = manager(&server.url()).await;
    let reading = async |key: &str, count: usize| {
        let mut readers = Vec::new();
        for _ in 0..count {
            let acquire = locks.lock(key).ttl(TTL).read().acquire();
            readers.push(within(TIME_LIMIT, acquire).await.unwrap());
        }
        readers
    };
    let [stuck, alone, free] = [
        reading("key", 20).await,
        reading("another", 1).await,
        reading("free", 2).await,
    ];
    let guard = take(&locks, "other", TTL).await;
    let peers = [
        keeps_row(&server).await,
        keeps_row_of(&server, "another").await,
    ];
    sleep(TTL + TTL / 4).await;
    assert!(free.iter().chain([&guard]).all(LockGuard::is_held));
    assert!(!stuck.iter().chain(&alone).any(LockGuard::is_held));
    for mut peer in peers {
        peer.rows("COMMIT").await;
    }
    drop((stuck, alone));
    release(take(&locks, "key", LONG).await).await;
    for guard in free.into_iter().chain([guard]) {
        release(guard).await;
    }
}
