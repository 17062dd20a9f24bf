//! Servers without room on their disk, and without connections left: nothing is granted twice, and all goes on later.
//!
//! Section: mysql.md#what-it-promises

use std::time::Duration;

use lock_runtime::{LockConfig, LockError, LockManager};
use tests::{
    LONG, MysqlPeer, MysqlServer, Proxy, TIME_LIMIT, connect, eventually, mysql_script, poll_once,
    release, take, take_turn, within,
};
use tokio::time::timeout;

use crate::{refused, server};

/// In MB.
const DISK: u32 = 160;
/// More than the pages of the tables have room for.
const KEYS: usize = 20_000;
const TTL: Duration = Duration::from_secs(2);

/// One that gives up soon while the server cannot serve.
async fn manager(server: &MysqlServer) -> LockManager {
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

#[tokio::test]
async fn a_full_disk_makes_locks_unavailable_until_there_is_room() {
    let builder = MysqlServer::builder().disk(DISK);
    let Some(mut server) = builder.start("tests/mysql").await else {
        return;
    };
    let [ours, theirs] = [manager(&server).await, manager(&server).await];
    let guard = take(&ours, "key", LONG).await;
    server.fill_disk();
    let error = use_up(&theirs).await;
    assert!(matches!(error, LockError::Unavailable { .. }), "{error}");
    let tried = theirs.lock("key").try_once().acquire();
    match within(TIME_LIMIT, tried).await {
        Err(LockError::Unavailable { .. } | LockError::Contended { .. }) => {}
        other => panic!("{other:?}"),
    }
    server.clear_disk();
    if !server.is_up().await {
        // As whatever supervises it would do.
        server.restart().await;
    }
    let other = async || theirs.lock("other").ttl(LONG).wait(TTL).acquire().await;
    eventually(TIME_LIMIT, async || other().await.is_ok()).await;
    let tried = theirs.lock("key").try_once().acquire();
    match within(TIME_LIMIT, tried).await {
        Err(LockError::Contended { .. }) => {}
        other => panic!("{other:?}"),
    }
    assert!(guard.is_held());
    release(guard).await;
    release(take(&theirs, "key", LONG).await).await;
}

#[tokio::test]
async fn a_manager_without_a_connection_left_says_so_and_others_reconnect_later() {
    let builder = MysqlServer::builder().option("--max-connections=12");
    let Some(server) = builder.start("tests/mysql").await else {
        return;
    };
    let config = LockConfig::new(server.url()).unwrap();
    let locks = connect(config.unavailable_wait_forever()).await;
    let guard = take(&locks, "key", LONG).await;
    let mut administrator = server.peer().await;
    let mut others = Vec::new();
    let mut use_up = async || {
        while let Ok(peer) = MysqlPeer::try_connect(server.addr(), "root", "mysql").await {
            others.push(peer);
        }
    };
    use_up().await;
    let error = refused(&server.url()).await;
    assert!(matches!(error, LockError::Unavailable { .. }), "{error}");
    assert!(error.to_string().contains("connections"), "{error}");
    // The manager's own connection is taken by others as soon as it is ended.
    let ended = timeout(TIME_LIMIT, async {
        while locks.health().await.connected {
            MysqlServer::kill_others(&mut administrator, "").await;
            use_up().await;
        }
    });
    ended.await.unwrap();
    assert!(guard.is_held());
    others.clear();
    let other = within(TIME_LIMIT, locks.lock("other").wait_forever().acquire());
    release(other.await.unwrap()).await;
    release(guard).await;
}

/// A backup of all databases does that, and so does a clean-up of disks.
#[tokio::test]
async fn locks_outlive_a_server_that_writes_nothing_for_a_while() {
    let Some(server) = server().await else { return };
    let config = LockConfig::new(server.url()).unwrap();
    let locks = connect(config.unavailable_wait_forever()).await;
    let guard = take(&locks, "key", LONG).await;
    let mut peer = server.peer().await;
    for lock in [
        "FLUSH TABLES WITH READ LOCK",
        "LOCK TABLES lock_runtime_lock WRITE, lock_runtime_guard WRITE",
    ] {
        peer.rows(lock).await;
        let other = locks.lock("other").ttl(LONG).wait_forever().acquire();
        let mut other = tokio::spawn(other);
        let early = timeout(TTL, &mut other).await;
        assert!(early.is_err(), "{lock}: {early:?}");
        peer.rows("UNLOCK TABLES").await;
        release(within(TIME_LIMIT, other).await.unwrap().unwrap()).await;
        assert!(guard.is_held());
    }
    release(guard).await;
}

/// All of a batch takes a slow server longer than its clients wait, again and again.
#[tokio::test]
async fn a_server_that_is_too_slow_for_batches_grants_locks_one_by_one() {
    let Some(server) = server().await else { return };
    let proxy = Proxy::start(server.addr());
    let config = LockConfig::new(server.url_at(proxy.addr())).unwrap();
    let locks = connect(config.unavailable_wait_forever()).await;
    take_turn(&locks, "warm").await;
    let script = mysql_script();
    let mut statements = script.split("\n//\n");
    let many = statements.find(|it| it.contains("CREATE PROCEDURE lock_runtime_many("));
    let slow = many
        .unwrap()
        .replace("START TRANSACTION;", "DO SLEEP(10); START TRANSACTION;");
    server.cmd("DROP PROCEDURE lock_runtime_many").await;
    server.cmd(&slow).await;
    let acquire = |key| locks.lock(key).ttl(LONG).wait_forever().acquire();
    let mut all = ["warm", "a", "b", "c"].map(acquire);
    proxy.requests().hold();
    assert!(poll_once(&mut all[0]).await.is_pending());
    within(TIME_LIMIT, proxy.requests().held()).await;
    for waiter in &mut all[1..] {
        assert!(poll_once(waiter).await.is_pending());
    }
    proxy.requests().pass();
    for waiter in all {
        release(within(TIME_LIMIT, waiter).await.unwrap()).await;
    }
}

/// All calls of a turn together are longer than the server takes.
#[tokio::test]
async fn a_server_that_takes_no_long_query_grants_many_locks_at_once() {
    let builder = MysqlServer::builder().option("--max-allowed-packet=300K");
    let Some(server) = builder.start("tests/mysql").await else {
        return;
    };
    let proxy = Proxy::start(server.addr());
    let config = LockConfig::new(server.url_at(proxy.addr())).unwrap();
    let locks = connect(config.unavailable_wait_forever()).await;
    // Calls of readers do not go in batches.
    let acquire = |number| {
        let lock = locks.lock(format!("{number:0>900}")).read();
        lock.ttl(LONG).wait_forever().acquire()
    };
    let mut all: Vec<_> = (0..300).map(acquire).collect();
    proxy.requests().hold();
    assert!(poll_once(&mut all[0]).await.is_pending());
    within(TIME_LIMIT, proxy.requests().held()).await;
    for waiter in &mut all[1..] {
        assert!(poll_once(waiter).await.is_pending());
    }
    proxy.requests().pass();
    for waiter in all {
        release(within(TIME_LIMIT, waiter).await.unwrap()).await;
    }
}
