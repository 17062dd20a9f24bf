//! Connections that administrators end, and statements that they cancel.
//!
//! Section: postgres.md#what-it-promises

use std::time::Duration;

use tests::{LONG, Pulse, TIME_LIMIT, eventually, release, take, within, work};
use tokio::time::sleep;

use crate::{are_served_in_order, manager, server, waiter};

#[tokio::test]
async fn positions_survive_connections_that_are_terminated() {
    let Some(server) = server().await else { return };
    let [ours, theirs] = [manager(&server.url()).await, manager(&server.url()).await];
    let guard = take(&ours, "key", LONG).await;
    let waiters = vec![
        waiter(&theirs).await,
        waiter(&ours).await,
        waiter(&theirs).await,
    ];
    for _ in 0..3 {
        assert!(server.terminate_all().await >= 2);
        for locks in [&ours, &theirs] {
            let request = locks.lock("other").wait(TIME_LIMIT);
            release(within(TIME_LIMIT, request.acquire()).await.unwrap()).await;
        }
    }
    assert!(guard.is_held());
    are_served_in_order(guard, waiters).await;
}

/// The lock is handed over while nobody is there to be notified.
#[tokio::test]
async fn a_turn_that_comes_while_the_connection_is_terminated_is_taken() {
    let Some(server) = server().await else { return };
    let [ours, theirs] = [manager(&server.url()).await, manager(&server.url()).await];
    for _ in 0..5 {
        let guard = take(&theirs, "key", LONG).await;
        let next = waiter(&ours).await;
        let (_, ()) = tokio::join!(server.terminate_all(), release(guard));
        release(within(TIME_LIMIT, next).await.unwrap()).await;
    }
}

/// A statement that is cancelled has done nothing, and is sent again.
#[tokio::test]
async fn nothing_is_lost_by_statements_that_are_cancelled() {
    let Some(server) = server().await else { return };
    let locks = manager(&server.url()).await;
    let mut peer = server.peer().await;
    let cancelling = async {
        loop {
            peer.rows(
                "SELECT pg_cancel_backend(pid) FROM pg_stat_activity \
                 WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()",
            )
            .await;
            sleep(Duration::from_millis(1)).await;
        }
    };
    let turns = async {
        for _ in 0..200 {
            let guard = take(&locks, "key", LONG).await;
            let next = locks.lock("key").ttl(LONG).wait(TIME_LIMIT).acquire();
            release(guard).await;
            release(within(TIME_LIMIT, next).await.unwrap()).await;
        }
    };
    tokio::select! {
        () = cancelling => unreachable!("it goes on for ever"),
        () = turns => {}
    }
    let traces = async || server.traces(tests::SCHEMA).await.is_empty();
    eventually(TIME_LIMIT, traces).await;
}

/// A renewal on the next connection comes in time.
#[tokio::test]
async fn a_body_runs_on_while_connections_are_terminated() {
    const TTL: Duration = Duration::from_secs(3);
    let Some(server) = server().await else { return };
    let locks = manager(&server.url()).await;
    let guard = take(&locks, "key", TTL).await;
    let pulse = Pulse::default();
    let body = work(guard, &pulse, 2 * TTL);
    while !body.is_finished() {
        server.terminate_all().await;
        sleep(TTL / 4).await;
    }
    within(TIME_LIMIT, body).await.unwrap().unwrap();
}
