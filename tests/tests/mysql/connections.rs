//! Connections that end, and clients that stop.
//!
//! Section: mysql.md#waiting

use std::time::Duration;

use lock_runtime::{LockConfig, LockGuard};
use tests::{LONG, Proxy, TIME_LIMIT, connect, eventually, queued, release, take, timed, within};
use tokio::time::sleep;

use crate::server;

/// A waiter whose lease would have to end first holds up the next one for three seconds.
const AT_ONCE: Duration = Duration::from_secs(2);

#[tokio::test]
async fn a_waiter_that_is_gone_is_skipped_at_once() {
    let Some(server) = server().await else { return };
    let mut proxy = Proxy::start(server.addr());
    let locks = connect(&*server.url()).await;
    let guard = take(&locks, "key", LONG).await;
    let gone = connect(&*server.url_at(proxy.addr())).await;
    let _waiter = queued(&gone, gone.lock("key").ttl(LONG).wait_forever()).await;
    let next = queued(&locks, locks.lock("key").ttl(LONG).wait_forever()).await;
    proxy.refuse().await;
    proxy.cut().await;
    let sessions = "SELECT ID FROM information_schema.PROCESSLIST WHERE DB = 'shop'";
    eventually(TIME_LIMIT, async || server.cmd(sessions).await.len() == 2).await;
    release(guard).await;
    let (took, next) = timed(within(TIME_LIMIT, next)).await;
    assert!(took < AT_ONCE, "{took:?}");
    release(next.unwrap()).await;
}

#[tokio::test]
async fn a_lock_outlives_its_connection() {
    let Some(server) = server().await else { return };
    let config = LockConfig::new(server.url()).unwrap();
    let locks = connect(config.unavailable_wait_forever()).await;
    let guard = take(&locks, "key", LONG).await;
    let waiter = queued(&locks, locks.lock("key").ttl(LONG).wait_forever()).await;
    let mut peer = server.peer().await;
    let others =
        "SELECT ID FROM information_schema.PROCESSLIST WHERE DB = 'shop' AND ID <> CONNECTION_ID()";
    for id in peer.column(others).await {
        // It may have ended by itself.
        let _ = peer.try_rows(&format!("KILL {id}")).await;
    }
    assert!(guard.is_held());
    release(guard).await;
    release(within(TIME_LIMIT, waiter).await.unwrap()).await;
}

/// Waiters ask every 375 ms at the latest.
// Section: guarantees.md#first-come-first-served
#[tokio::test]
async fn a_waiter_with_a_short_lease_has_a_second_to_take_the_lock() {
    let Some(server) = server().await else { return };
    drop(connect(&*server.url()).await);
    let mut peer = server.peer().await;
    let token = |number: u8| format!("x'{number:032x}'");
    let session = token(9);
    let acquire = |number, ttl| {
        let token = token(number);
        format!(
            "CALL lock_runtime_acquire('lock:{{key}}', {token}, '', 'x', {ttl}, {session}, 1, NULL, NULL, 0)"
        )
    };
    assert_eq!(peer.value(&acquire(1, 60_000)).await, "granted");
    assert_eq!(peer.value(&acquire(2, 100)).await, "waiting");
    let release = format!(
        "CALL lock_runtime_release('lock:{{key}}', {}, 0, 0, {session}, 0)",
        token(1)
    );
    assert_eq!(peer.value(&release).await, "1");
    sleep(Duration::from_millis(400)).await;
    let ask = format!(
        "CALL lock_runtime_ask('lock:{{key}}', {}, x'00000064', {session}, 0)",
        token(2)
    );
    let answer = peer.rows(&ask).await;
    let fences = answer[0][5].clone().unwrap();
    assert!(fences.len() > "{-1}".len(), "{fences}");
    // Its own lease is as long as it wants.
    sleep(Duration::from_millis(150)).await;
    assert_eq!(peer.value(&acquire(3, 60_000)).await, "granted");
}

/// One call looks at 100 locks.
// Section: guarantees.md#looking-at-a-lock
#[tokio::test]
async fn a_holder_of_many_locks_learns_soon_that_one_was_revoked() {
    let Some(server) = server().await else { return };
    let (locks, others) = (connect(&*server.url()).await, connect(&*server.url()).await);
    let mut guards = Vec::new();
    for number in 0..250 {
        guards.push(take(&locks, &number.to_string(), LONG).await);
    }
    for number in [249, 120, 0] {
        let revoked = guards.remove(number);
        let held = others.force_release(number.to_string()).await;
        assert_eq!(held.unwrap(), 1);
        // Long before its next renewal.
        within(Duration::from_secs(10), revoked.lost()).await;
    }
    assert!(guards.iter().all(LockGuard::is_held));
}
