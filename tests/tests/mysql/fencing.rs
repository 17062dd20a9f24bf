//! `assert_fence` in a transaction of the user's own: only the holder's transaction commits, and no other holder begins before
//! it has ended.
//!
//! Section: mysql.md#fencing-your-transactions

use std::time::Duration;

use tests::{
    LONG, MysqlPeer, MysqlServer, Proxy, TIME_LIMIT, connect, late_holders, queued, release, take,
    within,
};
use tokio::time::timeout;

use crate::{server, waits_for_a_row};

const LEVELS: [&str; 3] = ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"];

async fn assert_fence(peer: &mut MysqlPeer, fence: u64) -> Result<(), String> {
    let sql = format!("CALL lock_runtime_assert_fence('key', {fence}, 'lock')");
    let asserted = peer.try_rows(&sql).await;
    asserted.map(drop).map_err(|error| error.state)
}

async fn begin(peer: &mut MysqlPeer, level: &str) {
    let sql = format!("SET TRANSACTION ISOLATION LEVEL {level}; START TRANSACTION");
    peer.rows(&sql).await;
    // The snapshot of the transaction is of this moment.
    peer.rows("SELECT * FROM account").await;
}

/// A connection to a server with data of the user's own.
async fn user_of(server: &MysqlServer) -> MysqlPeer {
    let mut peer = server.peer().await;
    peer.rows("CREATE TABLE account (id INT PRIMARY KEY, balance INT)")
        .await;
    peer
}

#[tokio::test]
async fn the_next_holder_waits_for_the_transaction_of_the_last_one() {
    let Some(server) = server().await else { return };
    let (locks, others) = (connect(&*server.url()).await, connect(&*server.url()).await);
    let mut peer = user_of(&server).await;
    for level in LEVELS {
        let guard = take(&locks, "key", LONG).await;
        begin(&mut peer, level).await;
        assert_eq!(
            assert_fence(&mut peer, guard.fencing_token().get()).await,
            Ok(()),
            "{level}"
        );
        // Renewals do not wait for the transaction, and no release does.
        let request = others.lock("key").ttl(LONG).wait_forever();
        let mut waiter = queued(&others, request).await;
        release(guard).await;
        let early = timeout(Duration::from_millis(500), &mut waiter).await;
        assert!(early.is_err(), "{level}");
        peer.rows("COMMIT").await;
        release(within(TIME_LIMIT, waiter).await.unwrap()).await;
    }
}

#[tokio::test]
async fn a_former_holder_is_refused_whatever_its_snapshot_shows() {
    let Some(server) = server().await else { return };
    let locks = connect(&*server.url()).await;
    let mut peer = user_of(&server).await;
    for level in LEVELS {
        let guard = take(&locks, "key", LONG).await;
        let fence = guard.fencing_token().get();
        begin(&mut peer, level).await;
        release(guard).await;
        let next = take(&locks, "key", LONG).await;
        let asserted = assert_fence(&mut peer, fence).await;
        assert_eq!(asserted, Err("LR001".to_owned()), "{level}");
        peer.rows("ROLLBACK").await;
        release(next).await;
        assert_eq!(
            assert_fence(&mut peer, fence).await,
            Err("LR001".to_owned())
        );
    }
}

/// A server that took over may have forgotten it, and let others go on sharing the lock.
#[tokio::test]
async fn a_token_between_those_of_readers_is_refused() {
    let Some(server) = server().await else { return };
    let locks = connect(&*server.url()).await;
    let read = async || {
        let request = locks.lock("key").ttl(LONG).read();
        within(TIME_LIMIT, request.acquire()).await.unwrap()
    };
    let (first, second) = (read().await, read().await);
    let mut peer = user_of(&server).await;
    for level in LEVELS {
        for (fence, expected) in [
            (first.fencing_token().get(), Ok(())),
            (second.fencing_token().get(), Ok(())),
            (second.fencing_token().get() - 1, Err("LR001".to_owned())),
        ] {
            begin(&mut peer, level).await;
            assert_eq!(assert_fence(&mut peer, fence).await, expected, "{level}");
            peer.rows("ROLLBACK").await;
        }
    }
    release(first).await;
    release(second).await;
}

/// The guard of a lock is deleted when nobody has used the lock for an hour.
#[tokio::test]
async fn a_guard_that_is_deleted_meanwhile_lets_no_transaction_commit() {
    let Some(server) = server().await else { return };
    let locks = connect(&*server.url()).await;
    let guard = take(&locks, "key", LONG).await;
    let fence = guard.fencing_token().get();
    release(guard).await;
    let mut deletes = server.peer().await;
    let delete = "START TRANSACTION; DELETE FROM lock_runtime_guard WHERE name = 'lock:{key}'";
    deletes.rows(delete).await;
    let mut peer = server.peer().await;
    let asserted = tokio::spawn(async move { assert_fence(&mut peer, fence).await });
    waits_for_a_row(&server, 1).await;
    deletes.rows("COMMIT").await;
    let asserted = within(TIME_LIMIT, asserted).await.unwrap();
    assert_eq!(asserted, Err("LR001".to_owned()));
}

#[tokio::test]
async fn a_refusal_names_the_lock_whatever_its_key_is() {
    let Some(server) = server().await else { return };
    let locks = connect(&*server.url()).await;
    let guard = take(&locks, "key", LONG).await;
    let fence = guard.fencing_token().get();
    let mut peer = server.peer().await;
    for (key, names, token) in [
        ("'other'", "other", "1"),
        // The limit is within a character.
        ("CONCAT('k', REPEAT('é', 60))", "kééé", "1"),
        ("x'6bff'", "6BFF", "1"),
        ("'key'", "key", "NULL"),
    ] {
        let sql = format!("CALL lock_runtime_assert_fence({key}, {token}, 'lock')");
        let error = peer.try_rows(&sql).await.unwrap_err();
        assert_eq!(error.state, "LR001", "{error}");
        assert!(error.message.contains(names), "{error}");
    }
    assert_eq!(assert_fence(&mut peer, fence).await, Ok(()));
    release(guard).await;
}

#[tokio::test]
async fn a_refused_transaction_that_stays_open_keeps_nobody_out() {
    let Some(server) = server().await else { return };
    let (locks, others) = (connect(&*server.url()).await, connect(&*server.url()).await);
    let mut peer = user_of(&server).await;
    let guard = take(&locks, "key", LONG).await;
    let late = guard.fencing_token().get();
    release(guard).await;
    release(take(&locks, "key", LONG).await).await;
    begin(&mut peer, "READ COMMITTED").await;
    let asserted = assert_fence(&mut peer, late).await;
    assert_eq!(asserted, Err("LR001".to_owned()));
    release(take(&others, "key", LONG).await).await;
    peer.rows("ROLLBACK").await;
}

#[tokio::test]
async fn a_replica_refuses_the_call() {
    let Some(server) = server().await else { return };
    let locks = connect(&*server.url()).await;
    let guard = take(&locks, "key", LONG).await;
    let mut peer = server.peer().await;
    peer.rows("SET GLOBAL read_only = ON").await;
    let fence = guard.fencing_token().get();
    let asserted = assert_fence(&mut peer, fence).await;
    assert_eq!(asserted, Err("25006".to_owned()));
    peer.rows("SET GLOBAL read_only = OFF").await;
    assert_eq!(assert_fence(&mut peer, fence).await, Ok(()));
    release(guard).await;
}

#[tokio::test]
async fn readers_keep_writers_out_until_their_transactions_end() {
    let Some(server) = server().await else { return };
    let (locks, others) = (connect(&*server.url()).await, connect(&*server.url()).await);
    let mut peer = user_of(&server).await;
    let reader = locks.lock("key").read().ttl(LONG).wait_forever();
    let one = within(TIME_LIMIT, reader.acquire()).await.unwrap();
    let reader = others.lock("key").read().ttl(LONG).wait_forever();
    let other = within(TIME_LIMIT, reader.acquire()).await.unwrap();
    begin(&mut peer, "READ COMMITTED").await;
    assert_eq!(
        assert_fence(&mut peer, other.fencing_token().get()).await,
        Ok(())
    );
    release(one).await;
    release(other).await;
    let request = others.lock("key").ttl(LONG).wait_forever();
    let mut waiter = queued(&others, request).await;
    assert!(
        timeout(Duration::from_millis(500), &mut waiter)
            .await
            .is_err()
    );
    peer.rows("COMMIT").await;
    release(within(TIME_LIMIT, waiter).await.unwrap()).await;
}

/// The lock is free, and the first waiter does not know it yet.
#[tokio::test]
async fn a_newcomer_does_not_pass_who_waited_for_the_transaction() {
    let Some(server) = server().await else { return };
    let proxy = Proxy::start(server.addr());
    let locks = connect(&*server.url()).await;
    let first = connect(&*server.url_at(proxy.addr())).await;
    let mut peer = user_of(&server).await;
    let guard = take(&locks, "key", LONG).await;
    begin(&mut peer, "READ COMMITTED").await;
    let fence = guard.fencing_token().get();
    assert_eq!(assert_fence(&mut peer, fence).await, Ok(()));
    let waiter = queued(&first, first.lock("key").ttl(LONG).wait_forever()).await;
    release(guard).await;
    proxy.requests().hold();
    peer.rows("COMMIT").await;
    let mut newcomer = locks.lock("key").ttl(LONG).wait_forever().acquire();
    let early = timeout(Duration::from_millis(300), &mut newcomer).await;
    assert!(early.is_err(), "it passed the waiter");
    proxy.requests().pass();
    release(within(TIME_LIMIT, waiter).await.unwrap()).await;
    release(within(TIME_LIMIT, newcomer).await.unwrap()).await;
}

#[tokio::test]
async fn a_late_holder_commits_nothing_beside_the_next_one() {
    late_holders_commit_nothing(1).await;
}

#[tokio::test]
#[ignore = "takes a minute: `make crashes`"]
async fn a_thousand_late_holders_commit_nothing_beside_the_next_ones() {
    late_holders_commit_nothing(17).await;
}

async fn late_holders_commit_nothing(times: usize) {
    let Some(server) = server().await else { return };
    late_holders::commit_nothing(&server.url(), env!("CARGO_BIN_EXE_worker"), times).await;
}
