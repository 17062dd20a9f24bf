//! Holders that stop past their leases in the middle of a transaction: with `assert_fence`, no balance loses a change.
//!
//! Section: postgres.md#fencing-your-transactions

use std::{collections::HashMap, time::Duration};

use lock_runtime::{LockConfig, LockManager};
use tests::{
    LONG, PostgresPeer, PostgresServer, SCHEMA, TIME_LIMIT, Worker, connect, release, take, within,
};
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

/// How many stop at once.
const ACCOUNTS: usize = 60;
/// Longer than the leases.
const STOP: Duration = Duration::from_millis(700);

/// What became of holders that had stopped, and of their accounts.
#[derive(Debug, Default)]
struct Seen {
    committed: usize,
    refused: HashMap<String, usize>,
    /// Changes that were committed, and are not in the balance.
    lost: i64,
}

/// Sixty holders of one process stop in the middle of their transactions, and others change the same balances meanwhile.
async fn stop(server: &PostgresServer, assertions: &str, seen: &mut Seen) {
    let mut administrator = server.peer().await;
    administrator
        .rows(&format!(
            "DROP TABLE IF EXISTS account; CREATE TABLE account (id int PRIMARY KEY, balance int); \
             INSERT INTO account SELECT id, 0 FROM generate_series(0, {ACCOUNTS} - 1) id"
        ))
        .await;
    let locks = connect(&*server.url()).await;
    let (url, addr, count) = (
        server.url(),
        server.addr().to_string(),
        ACCOUNTS.to_string(),
    );
    let args = ["transfers", &url, &addr, SCHEMA, &count];
    let mut late = Worker::spawn(env!("CARGO_BIN_EXE_worker"), args).await;
    late.send(assertions).await;
    assert_eq!(late.line().await, "ready");
    late.pause();
    let mut others = JoinSet::new();
    for account in 0..ACCOUNTS {
        let peer = server.peer().await;
        others.spawn(change(locks.clone(), peer, account));
    }
    sleep(STOP).await;
    late.send("go").await;
    late.resume();
    let mut changes = [1_i64; ACCOUNTS];
    loop {
        let line = late.line().await;
        let Some((account, outcome)) = line.split_once(' ') else {
            assert_eq!(line, "done");
            break;
        };
        if outcome == "committed" {
            changes[account.parse::<usize>().unwrap()] += 1;
            seen.committed += 1;
        } else {
            *seen.refused.entry(outcome.to_owned()).or_default() += 1;
        }
    }
    within(TIME_LIMIT, others.join_all()).await;
    let balances = administrator
        .column("SELECT balance FROM account ORDER BY id")
        .await;
    for (balance, changes) in balances.iter().zip(changes) {
        seen.lost += changes - balance.parse::<i64>().unwrap();
    }
    locks.shutdown().await;
}

/// Adds one to a balance under its lock.
async fn change(locks: LockManager, mut user: PostgresPeer, account: usize) {
    let key = format!("account:{account}");
    let guard = locks.lock(&*key).ttl(LONG).wait_forever().acquire().await;
    let guard = guard.unwrap();
    user.rows(&format!(
        "BEGIN; SELECT {SCHEMA}.assert_fence('{key}', {})",
        guard.fencing_token()
    ))
    .await;
    let read = format!("SELECT balance FROM account WHERE id = {account}");
    let seen: i64 = user.value(&read).await.parse().unwrap();
    let sum = seen + 1;
    user.rows(&format!(
        "UPDATE account SET balance = {sum} WHERE id = {account}; COMMIT"
    ))
    .await;
    drop(guard);
}

async fn stops(times: usize) {
    let Some(server) = crate::server().await else {
        return;
    };
    let mut seen = Seen::default();
    for _ in 0..times {
        stop(&server, "assert", &mut seen).await;
    }
    println!("{} holders stopped: {seen:?}", times * ACCOUNTS);
    assert_eq!(seen.lost, 0, "{seen:?}");
    // Those that asserted before the stop are in time; those that assert only afterwards are too late.
    assert!(seen.committed >= times * ACCOUNTS / 2, "{seen:?}");
    let refused: usize = seen.refused.values().sum();
    assert!(refused >= times * ACCOUNTS / 4, "{seen:?}");
    let codes = ["LR001", "40001"];
    assert!(
        seen.refused.keys().all(|it| codes.contains(&&**it)),
        "{seen:?}"
    );
    // What the assertions are for, and a check of the test.
    let mut blind = Seen::default();
    stop(&server, "blind", &mut blind).await;
    assert!(blind.lost > 0, "{blind:?}");
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
    let refused = timeout(STOP, &mut next).await;
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
