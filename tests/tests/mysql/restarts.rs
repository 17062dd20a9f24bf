//! Servers that start again.
//!
//! Section: mysql.md#failover-and-restarts

use std::time::{Duration, Instant};

use lock_runtime::{LockConfig, LockError};
use tests::{
    LONG, MysqlServer, TIME_LIMIT, connect, eventually, mysql_statements, queued, release, take,
    within,
};

use crate::server;

/// The longest lease where locks are quarantined.
const LONGEST: Duration = Duration::from_secs(2);

/// Waits until the quarantine has ended.
fn quarantined(server: &MysqlServer) -> LockConfig {
    let config = LockConfig::new(server.url()).unwrap().quarantine(LONGEST);
    config.ttl(LONGEST).unavailable_wait_forever()
}

#[tokio::test]
async fn locks_and_waiters_outlive_the_crash_of_a_server() {
    let Some(mut server) = server().await else {
        return;
    };
    let config = LockConfig::new(server.url()).unwrap();
    let locks = connect(config.unavailable_wait_forever()).await;
    let guard = take(&locks, "key", LONG).await;
    let waiter = queued(&locks, locks.lock("key").ttl(LONG).wait_forever()).await;
    server.restart().await;
    eventually(TIME_LIMIT, async || locks.health().await.connected).await;
    let refused = locks.lock("key").try_once().ttl(LONG).acquire();
    let refused = within(TIME_LIMIT, refused).await;
    assert!(
        matches!(refused, Err(LockError::Contended { .. })),
        "{refused:?}"
    );
    assert!(guard.is_held());
    let fence = guard.fencing_token().get();
    release(guard).await;
    let next = within(TIME_LIMIT, waiter).await.unwrap();
    assert!(next.fencing_token().get() > fence);
    release(next).await;
}

#[tokio::test]
async fn nothing_is_granted_in_the_quarantine_after_a_start() {
    let Some(mut server) = server().await else {
        return;
    };
    let config = quarantined(&server);
    let locks = connect(config.clone().connect_timeout(TIME_LIMIT)).await;
    let guard = take(&locks, "key", LONGEST).await;
    let begun = Instant::now();
    server.restart().await;
    let others = connect(config.connect_timeout(TIME_LIMIT)).await;
    let next = others.lock("another").wait_forever().acquire();
    let next = within(TIME_LIMIT, next).await.unwrap();
    assert!(begun.elapsed() >= LONGEST, "{:?}", begun.elapsed());
    release(next).await;
    drop(guard);
}

#[tokio::test]
async fn a_server_that_crashes_right_after_the_installation_grants_nothing_in_the_quarantine() {
    let builder = MysqlServer::builder().option("--innodb-flush-log-at-trx-commit=0");
    let Some(mut server) = builder.start("tests/mysql").await else {
        return;
    };
    let config = quarantined(&server);
    let locks = connect(config.clone().connect_timeout(TIME_LIMIT)).await;
    let guard = take(&locks, "key", LONGEST).await;
    let begun = Instant::now();
    server.restart().await;
    let others = connect(config.connect_timeout(TIME_LIMIT)).await;
    let next = others.lock("key").wait_forever().acquire();
    let next = within(TIME_LIMIT, next).await.unwrap();
    assert!(begun.elapsed() >= LONGEST, "{:?}", begun.elapsed());
    assert!(!guard.is_held());
    release(next).await;
}

#[tokio::test]
async fn an_installation_that_is_broken_off_and_repeated_is_no_start() {
    let Some(server) = server().await else { return };
    let mut peer = server.peer().await;
    for statement in mysql_statements() {
        peer.rows(&statement).await;
        if statement.contains("EXISTS lock_runtime_lock (") {
            break;
        }
    }
    let locks = connect(LockConfig::new(server.url()).unwrap().quarantine(LONG)).await;
    release(take(&locks, "key", LONG).await).await;
}

/// Callers use the procedures while they are replaced by those of the next version.
#[tokio::test]
async fn an_upgrade_beside_callers_is_no_failover() {
    let Some(server) = server().await else { return };
    let config = LockConfig::new(server.url()).unwrap().quarantine(LONG);
    let locks = connect(config).await;
    let mut peer = server.peer().await;
    peer.rows("DROP TABLE lock_runtime_primary").await;
    for statement in mysql_statements() {
        peer.rows(&statement).await;
        if statement.contains("PROCEDURE lock_runtime_quarantine_left(") {
            break;
        }
    }
    release(take(&locks, "key", LONG).await).await;
}

/// As on a machine that starts with a wrong clock.
#[tokio::test]
async fn what_was_noticed_while_the_clock_was_ahead_counts_from_now_on() {
    let Some(server) = server().await else { return };
    let locks = connect(quarantined(&server)).await;
    let mut peer = server.peer().await;
    for table in ["run", "primary"] {
        let ahead = format!(
            "UPDATE lock_runtime_{table} SET noticed = UNIX_TIMESTAMP() * 1000000 + 3600000000"
        );
        peer.rows(&ahead).await;
        let next = locks.lock("key").wait_forever().acquire();
        release(within(TIME_LIMIT, next).await.unwrap()).await;
    }
}

/// Another server has had the locks meanwhile, and what it has written was replicated.
#[tokio::test]
async fn nothing_is_granted_in_the_quarantine_after_a_server_takes_over_again() {
    let Some(server) = server().await else { return };
    let locks = connect(quarantined(&server)).await;
    release(take(&locks, "key", LONGEST).await).await;
    let begun = Instant::now();
    let replicated = "UPDATE lock_runtime_primary SET server = 'db2:3306:2'";
    server.cmd(replicated).await;
    let next = locks.lock("key").wait_forever().acquire();
    let next = within(TIME_LIMIT, next).await.unwrap();
    assert!(begun.elapsed() >= LONGEST, "{:?}", begun.elapsed());
    release(next).await;
}
