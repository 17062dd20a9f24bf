//! Locks that are handed over: by a notification at once, and for a lease that the waiter has to confirm.
//!
//! Section: postgres.md#what-it-promises

use std::time::Duration;

use lock_runtime::LockError;
use tests::{LONG, SCHEMA, TIME_LIMIT, eventually, median, release, take, timed, within};
use tokio::time::sleep;

use crate::{manager, server, waiter};

/// The lease of a waiter that has not confirmed it.
const UNCONFIRMED: Duration = Duration::from_secs(3);

#[tokio::test]
async fn a_lock_that_was_handed_over_is_kept_beyond_its_first_lease() {
    let Some(server) = server().await else { return };
    let [ours, theirs, others] = [
        manager(&server.url()).await,
        manager(&server.url()).await,
        manager(&server.url()).await,
    ];
    let guard = take(&theirs, "key", LONG).await;
    let next = waiter(&ours).await;
    let last = waiter(&others).await;
    release(guard).await;
    let guard = within(TIME_LIMIT, next).await.unwrap();
    // Renewals come later: a third of its ttl is twenty seconds.
    sleep(UNCONFIRMED + Duration::from_millis(500)).await;
    assert!(guard.is_held());
    let tried = theirs.lock("key").try_once().acquire();
    let error = within(TIME_LIMIT, tried).await.unwrap_err();
    assert!(matches!(error, LockError::Contended { .. }), "{error}");
    release(guard).await;
    release(within(TIME_LIMIT, last).await.unwrap()).await;
}

/// A waiter that is not notified asks a second after it has joined.
#[tokio::test]
async fn waiters_are_notified() {
    let Some(server) = server().await else { return };
    let [ours, theirs] = [manager(&server.url()).await, manager(&server.url()).await];
    let mut guard = take(&theirs, "key", LONG).await;
    let mut hand_overs = Vec::new();
    for turn in 0..20 {
        let next = waiter([&ours, &theirs][turn % 2]).await;
        release(guard).await;
        let (took, next) = timed(next).await;
        hand_overs.push(took);
        guard = next.unwrap();
    }
    release(guard).await;
    let took = median(hand_overs);
    assert!(took < Duration::from_millis(600), "{took:?}");
}

/// In a quarantine, a release shortens a lease, and nobody is served.
#[tokio::test]
async fn a_try_finds_that_the_longest_lease_of_readers_was_shortened() {
    let Some(server) = server().await else { return };
    let (name, session) = ("lock:{key}", "00000000-0000-0000-0000-000000000009");
    let acquire = async |token: u32, kind: &str| {
        let token = format!("00000000-0000-0000-0000-{token:012}");
        let acquired = format!(
            "SELECT status FROM {SCHEMA}.acquire('{name}', '{token}', '', '{kind}', 60000, '{session}', false, false, \
             NULL, 0, true)"
        );
        server.cmd(&acquired).await
    };
    drop(manager(&server.url()).await);
    assert_eq!(acquire(1, "r").await, ["granted"]);
    assert_eq!(acquire(2, "x").await, ["busy"]);
    let token = format!("00000000-0000-0000-0000-{:012}", 1);
    let shorten =
        format!("SELECT {SCHEMA}.renew(ARRAY['{name}'], ARRAY['{token}'::uuid], ARRAY[1], true)");
    server.cmd(&shorten).await;
    eventually(TIME_LIMIT, async || acquire(2, "x").await == ["granted"]).await;
}
