//! What decides is read behind the row of the lock: the clock, and who has it.
//!
//! Section: mysql.md#what-it-promises

use std::time::Duration;

use lock_runtime::{LockConfig, LockError};
use tests::{
    LONG, MysqlServer, Proxy, TIME_LIMIT, connect, eventually, poll_once, queued, release, take,
    take_turn, within,
};
use tokio::time::sleep;

use crate::{row_of, server, waits_for_a_row};

/// Longer than clocks differ, and shorter than a call waits for a row.
const WAIT: Duration = Duration::from_millis(600);

#[tokio::test]
async fn a_lease_counts_from_behind_the_wait_for_its_row() {
    let Some(server) = server().await else { return };
    let (locks, watch) = (connect(&*server.url()).await, connect(&*server.url()).await);
    take_turn(&locks, "key").await;
    let mut row = row_of(&server, "key").await;
    let acquire = tokio::spawn(locks.lock("key").ttl(LONG).wait_forever().acquire());
    waits_for_a_row(&server, 1).await;
    sleep(WAIT).await;
    row.rows("COMMIT").await;
    let guard = within(TIME_LIMIT, acquire).await.unwrap().unwrap();
    let status = watch.status("key").await.unwrap();
    let left = status.holders[0].remaining.unwrap();
    assert!(left + WAIT / 2 > LONG, "{left:?}");
    release(guard).await;
}

#[tokio::test]
async fn a_lock_that_somebody_is_taking_is_not_granted_beside() {
    let Some(server) = server().await else { return };
    let locks = connect(&*server.url()).await;
    take_turn(&locks, "key").await;
    let mut row = row_of(&server, "key").await;
    let acquire = tokio::spawn(locks.lock("key").ttl(LONG).try_once().acquire());
    waits_for_a_row(&server, 1).await;
    // As whoever was granted the lock meanwhile.
    row.rows(
        "UPDATE lock_runtime_lock SET token = UNHEX(REPEAT('07', 16)), who = '1@h', fence = fence + 1, \
         expires = UNIX_TIMESTAMP() * 1000000 + 60000000 WHERE name = 'lock:{key}'; COMMIT",
    )
    .await;
    let outcome = within(TIME_LIMIT, acquire).await.unwrap();
    assert!(
        matches!(outcome, Err(LockError::Contended { .. })),
        "{outcome:?}"
    );
}

/// The calls of a turn go as one query, which ends with the first error.
#[tokio::test]
async fn a_refused_call_does_not_end_those_behind_it() {
    let Some(server) = server().await else { return };
    let proxy = Proxy::start(server.addr());
    let config = LockConfig::new(server.url_at(proxy.addr())).unwrap();
    let locks = connect(config.unavailable_wait_forever()).await;
    for key in ["a", "b", "c", "d"] {
        take_turn(&locks, key).await;
    }
    let mut row = row_of(&server, "b").await;
    // Calls of readers do not go in batches.
    let acquire = |key| locks.lock(key).read().ttl(LONG).wait_forever().acquire();
    let [mut a, mut b, mut c, mut d] = ["a", "b", "c", "d"].map(acquire);
    proxy.requests().hold();
    assert!(poll_once(&mut a).await.is_pending());
    within(TIME_LIMIT, proxy.requests().held()).await;
    // Behind the call on its way.
    for waiter in [&mut b, &mut c, &mut d] {
        assert!(poll_once(waiter).await.is_pending());
    }
    proxy.requests().pass();
    let first = within(TIME_LIMIT, a).await.unwrap();
    waits_for_a_row(&server, 1).await;
    for waiter in [&mut c, &mut d] {
        assert!(poll_once(waiter).await.is_pending(), "it went ahead");
    }
    // The server gives up waiting for the row that the first call needs.
    let others = tokio::join!(within(TIME_LIMIT, c), within(TIME_LIMIT, d));
    for guard in [first, others.0.unwrap(), others.1.unwrap()] {
        release(guard).await;
    }
    row.rows("COMMIT").await;
    release(within(TIME_LIMIT, b).await.unwrap()).await;
}

#[tokio::test]
async fn names_differ_by_every_byte() {
    let Some(server) = server().await else { return };
    let locks = connect(&*server.url()).await;
    let mut guards = Vec::new();
    for key in [
        "key",
        "KEY",
        "key ",
        "kéy",
        "key\u{301}",
        "k%y",
        "k_y",
        "k\\y",
        "k'y",
    ] {
        guards.push(take(&locks, key, LONG).await);
    }
    let listed = locks.list("k%*").await.unwrap();
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert_eq!(locks.list("*").await.unwrap().len(), guards.len());
}

#[tokio::test]
async fn waiters_are_served_in_their_order_by_several_managers() {
    let Some(server) = server().await else { return };
    let url = server.url();
    let held = connect(&*url).await;
    let guard = take(&held, "key", LONG).await;
    let mut managers = Vec::new();
    let mut waiters = Vec::new();
    for _ in 0..4 {
        let locks = connect(&*url).await;
        let request = locks.lock("key").ttl(LONG).wait_forever();
        waiters.push(queued(&locks, request).await);
        managers.push(locks);
    }
    release(guard).await;
    let mut last = 0;
    for waiter in waiters {
        let guard = within(TIME_LIMIT, waiter).await.unwrap();
        assert!(guard.fencing_token().get() > last);
        last = guard.fencing_token().get();
        release(guard).await;
    }
}

/// Two managers take the same locks at the same time, in batches of another order each.
#[tokio::test]
async fn deadlocks_do_not_reach_callers() {
    let Some(server) = server().await else { return };
    let url = server.url();
    let mut tasks = tokio::task::JoinSet::new();
    for manager in 0..4 {
        let locks = connect(&*url).await;
        for task in 0..16 {
            let locks = locks.clone();
            tasks.spawn(async move {
                for turn in 0..20 {
                    let key = format!("key{}", (task * 7 + turn * 3 + manager) % 8);
                    let guard = locks.lock(&*key).ttl(LONG).wait_forever().acquire().await;
                    release(guard.unwrap()).await;
                }
            });
        }
    }
    within(3 * TIME_LIMIT, tasks.join_all()).await;
    assert!(locks_left(&server).await.is_empty());
}

async fn locks_left(server: &MysqlServer) -> Vec<String> {
    server
        .cmd("SELECT name FROM lock_runtime_lock WHERE expires > UNIX_TIMESTAMP() * 1000000 OR waiters > 0")
        .await
}

/// In a quarantine, a release shortens a lease, and nobody is served.
#[tokio::test]
async fn a_try_finds_that_the_longest_lease_of_readers_was_shortened() {
    let Some(server) = server().await else { return };
    drop(connect(&*server.url()).await);
    let acquire = async |token: u32, kind: &str| {
        let acquire = format!(
            "CALL lock_runtime_acquire('lock:{{key}}', x'{token:032x}', '', '{kind}', 60000, x'{:032x}', 0, NULL, NULL, 0)",
            9
        );
        server.cmd(&acquire).await
    };
    assert_eq!(acquire(1, "r").await, ["granted"]);
    assert_eq!(acquire(2, "x").await, ["busy"]);
    let call = format!("000a{}{:032x}{:08x}", "6c6f636b3a7b6b65797d", 1, 1);
    server
        .cmd(&format!("CALL lock_runtime_renew(x'{call}')"))
        .await;
    eventually(TIME_LIMIT, async || acquire(2, "x").await == ["granted"]).await;
}
