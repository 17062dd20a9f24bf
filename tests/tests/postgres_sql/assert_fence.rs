//! A transaction that has asserted its fence commits before the next holder begins, or not at all.
//!
//! Section: postgres.md#fencing-your-transactions

use std::time::Duration;

use tests::{PostgresHome, PostgresPeer, SqlError};
use tokio::time::sleep;

use crate::{
    installed,
    peer::{Peer, Wanted},
};

const LOCK: &str = "lock:{acct:1}";
const LEVELS: [&str; 3] = ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"];
/// What a holder may do before it stops for longer than its lease.
const BEFORE: [&str; 3] = ["nothing", "a look at the data", "the assertion"];

/// A table of the user's own.
async fn table(home: &PostgresHome) -> PostgresPeer {
    let mut user = home.peer().await;
    let schema = home.schema();
    user.rows(&format!(
        "CREATE TABLE {schema}.account (id int PRIMARY KEY, balance int)"
    ))
    .await;
    user.rows(&format!(
        "INSERT INTO {schema}.account VALUES (1, 100), (2, 0)"
    ))
    .await;
    user
}

async fn balance(user: &mut PostgresPeer, schema: &str) -> i32 {
    user.value(&format!(
        "SELECT balance FROM {schema}.account WHERE id = 1"
    ))
    .await
    .parse()
    .unwrap()
}

/// Writes what it makes of a balance that it read.
async fn write(user: &mut PostgresPeer, schema: &str, balance: i32) -> Result<(), SqlError> {
    user.try_rows(&format!(
        "UPDATE {schema}.account SET balance = {balance} WHERE id = 1"
    ))
    .await?;
    user.try_rows("COMMIT").await.map(drop)
}

#[tokio::test]
async fn a_holder_that_stopped_past_its_lease_commits_nothing_beside_the_next_one() {
    let Some(home) = installed().await else {
        return;
    };
    let (mut peer, mut late, mut next) = (
        Peer::new(&home).await,
        table(&home).await,
        home.peer().await,
    );
    let schema = home.schema();
    let assert = |fence| format!("SELECT {schema}.assert_fence('acct:1', {fence})");
    let mut expected = 100;
    for level in LEVELS {
        for kind in ["x", "r"] {
            for before in BEFORE {
                let case = format!("{before} before the pause, {level}, {kind}");
                let held = Wanted {
                    ttl: 60,
                    kind,
                    ..Wanted::new(LOCK, 1)
                };
                let fence = peer.acquire(&held).await.fence;
                late.rows(&format!("BEGIN ISOLATION LEVEL {level}")).await;
                let mut seen = expected;
                if before == "the assertion" {
                    late.rows(&assert(fence)).await;
                }
                if before != "nothing" {
                    seen = balance(&mut late, schema).await;
                }
                sleep(Duration::from_millis(70)).await;

                let wanted = Wanted {
                    wait: false,
                    ..Wanted::new(LOCK, 2)
                };
                let mut grant = peer.acquire(&wanted).await;
                assert_eq!(grant.is("granted"), before != "the assertion", "{case}");
                if grant.is("granted") {
                    next.rows(&format!("BEGIN ISOLATION LEVEL {level}")).await;
                    next.rows(&assert(grant.fence)).await;
                    let refused = late.try_rows(&assert(fence)).await.unwrap_err().code;
                    let is_old = level != "READ COMMITTED" && before != "nothing";
                    assert_eq!(refused, if is_old { "40001" } else { "LR001" }, "{case}");
                    late.rows("ROLLBACK").await;
                } else {
                    write(&mut late, schema, seen - 10)
                        .await
                        .unwrap_or_else(|error| panic!("{case}: {error}"));
                    expected -= 10;
                    grant = peer.acquire(&wanted).await;
                    assert!(grant.is("granted"), "{case}");
                    next.rows(&format!("BEGIN ISOLATION LEVEL {level}")).await;
                    next.rows(&assert(grant.fence)).await;
                }
                let seen = balance(&mut next, schema).await;
                write(&mut next, schema, seen - 5)
                    .await
                    .unwrap_or_else(|error| panic!("{case}: {error}"));
                expected -= 5;
                assert_eq!(balance(&mut next, schema).await, expected, "{case}");
                peer.release(LOCK, 2).await;
            }
        }
    }
}

/// The snapshot is older than the next grant, which it does not show, and no row conflicts.
#[tokio::test]
async fn an_old_snapshot_shows_no_lock_that_is_somebody_elses_by_now() {
    let Some(home) = installed().await else {
        return;
    };
    let (mut peer, mut late) = (Peer::new(&home).await, table(&home).await);
    let schema = home.schema();
    for level in &LEVELS[1..] {
        for (kind, change) in [
            ("x", "released"),
            ("r", "released"),
            ("p2", "cooling"),
            ("x", "renewed"),
        ] {
            let held = Wanted {
                kind,
                ..Wanted::new(LOCK, 1)
            };
            let fence = peer.acquire(&held).await.fence;
            late.rows(&format!(
                "BEGIN ISOLATION LEVEL {level}; SELECT count(*) FROM {schema}.account"
            ))
            .await;
            match change {
                "cooling" => assert!(peer.release_with(LOCK, 1, 60_000, false, 0).await),
                "renewed" => assert!(peer.renew(LOCK, 1, 60_000).await),
                _ => assert!(peer.release(LOCK, 1).await),
            }
            let assert = format!("SELECT {schema}.assert_fence('acct:1', {fence})");
            let refused = late.try_rows(&assert).await.unwrap_err();
            assert_eq!(
                refused.code, "40001",
                "{change}, {kind}, {level}: {refused}"
            );
            late.rows("ROLLBACK").await;
            peer.force(LOCK).await;
        }
    }
}

#[tokio::test]
async fn renewals_do_not_wait_for_transactions() {
    let Some(home) = installed().await else {
        return;
    };
    let (mut peer, mut user) = (Peer::new(&home).await, table(&home).await);
    let schema = home.schema();
    for level in LEVELS {
        for kind in ["x", "r"] {
            let fence = peer
                .acquire(&Wanted {
                    kind,
                    ..Wanted::new(LOCK, 1)
                })
                .await
                .fence;
            user.rows(&format!("BEGIN ISOLATION LEVEL {level}")).await;
            user.rows(&format!("SELECT {schema}.assert_fence('acct:1', {fence})"))
                .await;
            // Behind a lock of the row this would end after a second.
            assert!(peer.renew(LOCK, 1, 60_000).await, "{level}, {kind}");
            assert!(peer.release(LOCK, 1).await);
            user.rows("COMMIT").await;
        }
    }
}

#[tokio::test]
async fn a_transaction_that_has_asserted_its_fence_may_not_be_idle_for_more_than_a_minute() {
    let Some(home) = installed().await else {
        return;
    };
    let (mut peer, mut user) = (Peer::new(&home).await, home.peer().await);
    let fence = peer.take(LOCK, 1).await;
    let assert = format!("SELECT {}.assert_fence('acct:1', {fence})", home.schema());
    for (own, expected) in [
        ("0", "1min"),
        ("90s", "1min"),
        ("1d", "1min"),
        ("30s", "30s"),
        ("500", "500ms"),
    ] {
        user.rows(&format!(
            "SET idle_in_transaction_session_timeout = '{own}'; BEGIN"
        ))
        .await;
        user.rows(&assert).await;
        assert_eq!(
            user.value("SHOW idle_in_transaction_session_timeout").await,
            expected,
            "{own}"
        );
        user.rows("COMMIT").await;
        let after = user.value("SHOW idle_in_transaction_session_timeout").await;
        assert_eq!(
            after,
            user.value(&format!(
                "SELECT set_config('idle_in_transaction_session_timeout', '{own}', false)"
            ))
            .await
        );
    }
}

#[tokio::test]
async fn locks_of_other_prefixes_and_names_are_others() {
    let Some(home) = installed().await else {
        return;
    };
    let (mut peer, mut user) = (Peer::new(&home).await, home.peer().await);
    let fence = peer.take("shop:{acct:1}", 1).await;
    let schema = home.schema();
    user.rows(&format!(
        "SELECT {schema}.assert_fence('acct:1', {fence}, 'shop')"
    ))
    .await;
    for arguments in [
        format!("'acct:1', {fence}"),
        format!("'acct:2', {fence}, 'shop'"),
        format!("'acct:1', {}, 'shop'", fence - 1),
    ] {
        let refused = user
            .try_rows(&format!("SELECT {schema}.assert_fence({arguments})"))
            .await
            .unwrap_err();
        assert_eq!(refused.code, "LR001", "{arguments}");
        assert!(refused.message.contains("acct:"), "{refused}");
    }
    peer.release("shop:{acct:1}", 1).await;
    let refused = user
        .try_rows(&format!(
            "SELECT {schema}.assert_fence('acct:1', {fence}, 'shop')"
        ))
        .await;
    assert_eq!(refused.unwrap_err().code, "LR001");
}
