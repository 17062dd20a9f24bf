//! Servers whose disks are full: what is held ends at its deadline, nothing is granted twice, and all goes on once there is
//! room.
//!
//! Section: postgres.md#what-it-promises

use std::time::Duration;

use lock_runtime::{LockConfig, LockError, LockManager};
use tests::{LONG, PostgresServer, TIME_LIMIT, connect, release, take, within};
use tokio::time::timeout;

/// In MB.
const DISK: u32 = 128;
/// More keys than the pages of the tables have room for.
const KEYS: usize = 2_000;
const TTL: Duration = Duration::from_secs(2);

async fn small() -> Option<PostgresServer> {
    let builder = PostgresServer::builder().disk(DISK);
    builder.start("tests/postgres").await
}

/// One that gives up soon while the server cannot serve.
async fn manager(server: &PostgresServer) -> LockManager {
    let config = LockConfig::new(server.url()).unwrap();
    let config = config.connect_timeout(TIME_LIMIT);
    connect(config.unavailable_wait(Duration::from_secs(1))).await
}

/// Takes locks that nobody has had, until two in a row cannot be had: a busy machine may be late once.
async fn use_up(locks: &LockManager) -> LockError {
    let mut failed = false;
    for number in 0..KEYS {
        let lock = locks.lock(format!("{number:0>900}")).ttl(LONG);
        match within(TIME_LIMIT, lock.wait_forever().acquire()).await {
            Ok(_) => failed = false,
            Err(error) if failed => return error,
            Err(_) => failed = true,
        }
    }
    panic!("{KEYS} locks had room");
}

/// Nobody else holds this lock while its holder is sure of it.
async fn is_not_granted_twice(locks: &LockManager, key: &str) {
    let tried = locks.lock(key).try_once().acquire();
    match within(TIME_LIMIT, tried).await {
        Err(LockError::Unavailable { .. } | LockError::Contended { .. }) => {}
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_full_disk_makes_locks_unavailable_until_there_is_room() {
    let Some(server) = small().await else { return };
    let [ours, theirs] = [manager(&server).await, manager(&server).await];
    let patient = crate::manager(&server.url()).await;
    let guard = take(&ours, "key", LONG).await;
    let fixed = ours.lock("fixed").ttl(TTL).renew(false).acquire();
    let fixed = within(TIME_LIMIT, fixed).await.unwrap();
    server.fill_disk();
    let error = use_up(&theirs).await;
    assert!(matches!(error, LockError::Unavailable { .. }), "{error}");
    let late = patient.lock(format!("{:0>900}", "late")).ttl(LONG);
    let mut late = tokio::spawn(late.wait_forever().acquire());
    is_not_granted_twice(&theirs, "key").await;
    assert!(guard.is_held());
    within(TIME_LIMIT, fixed.lost()).await;
    let refused = timeout(TTL, &mut late).await;
    assert!(refused.is_err(), "it goes on: {refused:?}");
    server.clear_disk();
    // Nobody has to do anything about it.
    release(within(TIME_LIMIT, late).await.unwrap().unwrap()).await;
    for locks in [&ours, &theirs] {
        let other = async || locks.lock("other").ttl(LONG).wait(TTL).acquire().await;
        let usable = async || other().await.is_ok();
        tests::eventually(TIME_LIMIT, usable).await;
    }
    is_not_granted_twice(&theirs, "key").await;
    assert!(guard.is_held());
    release(guard).await;
    release(take(&theirs, "key", LONG).await).await;
    release(take(&theirs, "fixed", LONG).await).await;
}

/// A server that cannot write its log ends all connections, recovers, and ends if it cannot.
#[tokio::test]
async fn a_server_that_has_no_room_for_its_log_forgets_no_lock() {
    let Some(mut server) = small().await else {
        return;
    };
    let [ours, theirs] = [manager(&server).await, manager(&server).await];
    let guard = take(&ours, "key", LONG).await;
    let mut peer = server.peer().await;
    server.fill_disk();
    let log = "SELECT pg_logical_emit_message(false, 'test', repeat('x', 1000000))";
    while peer.try_rows(log).await.is_ok() {}
    let tried = theirs.lock("other").wait_forever().acquire();
    let error = within(TIME_LIMIT, tried).await.unwrap_err();
    assert!(matches!(error, LockError::Unavailable { .. }), "{error}");
    server.clear_disk();
    // As whatever supervises it would do.
    server.restart().await;
    let usable = async || {
        let other = theirs.lock("other").ttl(LONG).wait(TTL).acquire();
        other.await.is_ok()
    };
    tests::eventually(TIME_LIMIT, usable).await;
    is_not_granted_twice(&theirs, "key").await;
    assert!(guard.is_held());
    release(guard).await;
    release(take(&theirs, "key", LONG).await).await;
}
