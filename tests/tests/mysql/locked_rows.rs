//! Rows of locks that somebody keeps: whoever wants those locks learns that they are not available, and no other lock is lost.
//!
//! Section: mysql.md#what-it-promises

use std::time::Duration;

use lock_runtime::{LockConfig, LockGuard, LockManager};
use tests::{
    MysqlPeer, MysqlServer, TIME_LIMIT, all_get_it, connect, release, take, take_turn,
    unavailable_to_all, wanted, within,
};
use tokio::time::sleep;

use crate::{row_of, server};

/// Each call about it keeps its connection busy for a second, however many want the lock, and the others have to get through
/// in between. With a history, each goes by itself.
#[tokio::test]
async fn a_row_that_stays_locked_costs_no_other_lock() {
    const TTL: Duration = Duration::from_secs(6);
    let Some(server) = server().await else { return };
    for grants in [0, 3] {
        let config = LockConfig::new(server.url()).unwrap().history(grants);
        let locks = connect(config.unavailable_wait_forever()).await;
        take_turn(&locks, "key").await;
        let guard = take(&locks, "other", TTL).await;
        let mut row = row_of(&server, "key").await;
        let mut callers = wanted(&locks, "key", 30);
        sleep(TTL + TTL / 2).await;
        assert!(guard.is_held(), "with a history of {grants}");
        assert!(callers.try_join_next().is_none());
        row.rows("COMMIT").await;
        all_get_it(callers).await;
        release(guard).await;
    }
}

#[tokio::test]
async fn readers_whose_row_stays_locked_cost_no_other_lock() {
    const TTL: Duration = Duration::from_secs(12);
    let Some(server) = server().await else { return };
    let locks = connect(&*server.url()).await;
    let reading = || locks.lock("key").ttl(TTL).read().acquire();
    let mut readers = Vec::new();
    for _ in 0..20 {
        readers.push(within(TIME_LIMIT, reading()).await.unwrap());
    }
    let guard = take(&locks, "other", TTL).await;
    let mut row = row_of(&server, "key").await;
    sleep(TTL + TTL / 4).await;
    assert!(guard.is_held());
    assert!(readers.iter().all(|it| !it.is_held()));
    row.rows("COMMIT").await;
    drop(readers);
    take_turn(&locks, "key").await;
    release(guard).await;
}

/// Renewals that are due meanwhile go together, also with those that cannot be carried out, and these are due again before
/// all of them have waited for their rows.
#[tokio::test]
async fn locks_whose_rows_stay_locked_cost_none_that_are_renewed_with_them() {
    const TTL: Duration = Duration::from_secs(12);
    let Some(server) = server().await else { return };
    for stuck in [1, 3] {
        let locks = connect(&*server.url()).await;
        let (mut keys, mut others) = (Vec::new(), Vec::new());
        for number in 0..stuck {
            keys.push(take(&locks, &format!("key {number}"), TTL).await);
        }
        for number in 0..12 {
            others.push(take(&locks, &format!("other {number}"), TTL).await);
        }
        let mut rows = Vec::new();
        for number in 0..stuck {
            rows.push(row_of(&server, &format!("key {number}")).await);
        }
        sleep(TTL / 3).await;
        // Nor do renewals that cannot be carried out go before all else, again and again.
        others.push(take(&locks, "free", TTL).await);
        assert!(keys.iter().any(LockGuard::is_held), "beside {stuck}");
        sleep(TTL).await;
        assert!(others.iter().all(LockGuard::is_held), "beside {stuck}");
        assert!(!keys.iter().any(LockGuard::is_held));
        for mut row in rows {
            row.rows("COMMIT").await;
        }
        for guard in others {
            release(guard).await;
        }
    }
}

/// Locks whose rows somebody keeps, and who.
async fn kept(server: &MysqlServer, locks: &LockManager) -> Vec<(String, MysqlPeer)> {
    let mut kept = Vec::new();
    for number in 0..3 {
        let key = format!("key {number}");
        take_turn(locks, &*key).await;
        let row = row_of(server, &key).await;
        kept.push((key, row));
    }
    kept
}

/// Each call about such a row takes a second, and a renewal waits for one of them.
#[tokio::test]
async fn rows_that_stay_locked_cost_no_short_lease() {
    const TTL: Duration = Duration::from_secs(3);
    let Some(server) = server().await else { return };
    let config = LockConfig::new(server.url()).unwrap();
    let locks = connect(config.unavailable_wait_forever()).await;
    let kept = kept(&server, &locks).await;
    let held = take(&locks, "held", 2 * TTL).await;
    let mut row_of_held = row_of(&server, "held").await;
    let mut guards = Vec::new();
    // Their renewals fall due one after another.
    for number in 0..8 {
        guards.push(take(&locks, &format!("other {number}"), TTL).await);
        sleep(TTL / 20).await;
    }
    let callers: Vec<_> = kept.iter().map(|(key, _)| wanted(&locks, key, 3)).collect();
    sleep(3 * TTL).await;
    assert!(guards.iter().all(LockGuard::is_held) && !held.is_held());
    row_of_held.rows("COMMIT").await;
    for (_, mut row) in kept {
        row.rows("COMMIT").await;
    }
    for callers in callers {
        all_get_it(callers).await;
    }
    for guard in guards {
        release(guard).await;
    }
}

/// Also to those whose calls wait for others to be answered.
#[tokio::test]
async fn a_row_that_stays_locked_is_unavailable_to_all_who_want_it() {
    let Some(server) = server().await else { return };
    let config = LockConfig::new(server.url()).unwrap().history(3);
    let locks = connect(config.unavailable_wait(Duration::from_secs(1))).await;
    take_turn(&locks, "key").await;
    let mut row = row_of(&server, "key").await;
    unavailable_to_all(wanted(&locks, "key", 30)).await;
    row.rows("COMMIT").await;
    take_turn(&locks, "key").await;
}
