//! Locks behind PgBouncer in transaction mode: nobody is notified, and nothing else changes.
//!
//! Section: postgres.md#poolers

use std::time::Duration;

use lock_runtime::{LockConfig, LockError};
use tests::{
    LONG, PgBouncer, PostgresPeer, PostgresServer, SCHEMA, TIME_LIMIT, Worker, connect, eventually,
    one_turn_within, release, take, timed, within,
};

use tokio::time::sleep;

use crate::{CARRIED_OUT, are_served_in_order, manager, server, waiter, waiting};

const TEST: &str = "tests/postgres";

async fn pooled() -> Option<(PostgresServer, PgBouncer)> {
    let server = server().await?;
    let pooler = PgBouncer::start(TEST, &server).await?;
    Some((server, pooler))
}

#[tokio::test]
async fn waiters_are_served_in_order_and_soon() {
    let Some((server, pooler)) = pooled().await else {
        return;
    };
    let [ours, theirs] = [manager(&pooler.url()).await, manager(&pooler.url()).await];
    let guard = take(&ours, "key", LONG).await;
    let mut waiters = Vec::new();
    for turn in 0..8 {
        waiters.push(waiter([&ours, &theirs][turn % 2]).await);
    }
    let (took, ()) = timed(are_served_in_order(guard, waiters)).await;
    // The next one asks within a quarter of a second, those behind it once a second.
    assert!(took < 8 * Duration::from_secs(2), "{took:?}");
    let traces = async || server.traces(SCHEMA).await.is_empty();
    eventually(TIME_LIMIT, traces).await;
}

#[tokio::test]
async fn managers_with_and_without_a_pooler_share_locks() {
    let Some((server, pooler)) = pooled().await else {
        return;
    };
    let [apart, direct] = [manager(&pooler.url()).await, manager(&server.url()).await];
    for _ in 0..10 {
        let guard = take(&apart, "key", LONG).await;
        let next = waiter(&direct).await;
        release(guard).await;
        let guard = within(TIME_LIMIT, next).await.unwrap();
        let next = waiter(&apart).await;
        release(guard).await;
        release(within(TIME_LIMIT, next).await.unwrap()).await;
    }
}

/// Each of them has less than a connection of the server.
#[tokio::test]
async fn more_managers_than_connections_of_the_server_hold_locks() {
    const MANAGERS: usize = 12;
    let Some((_server, pooler)) = pooled().await else {
        return;
    };
    let mut managers = Vec::new();
    let mut guards = Vec::new();
    for number in 0..MANAGERS {
        let locks = manager(&pooler.url()).await;
        guards.push(take(&locks, &number.to_string(), Duration::from_secs(3)).await);
        managers.push(locks);
    }
    sleep(Duration::from_secs(4)).await;
    for guard in guards {
        release(guard).await;
    }
}

#[tokio::test]
async fn locks_are_held_while_the_pooler_restarts() {
    let Some((_server, mut pooler)) = pooled().await else {
        return;
    };
    let [ours, theirs] = [manager(&pooler.url()).await, manager(&pooler.url()).await];
    let guard = take(&ours, "key", LONG).await;
    let waiters = vec![waiter(&theirs).await, waiter(&ours).await];
    pooler.restart().await;
    for locks in [&ours, &theirs] {
        let request = locks.lock("other").wait_forever();
        release(within(TIME_LIMIT, request.acquire()).await.unwrap()).await;
    }
    assert!(guard.is_held());
    are_served_in_order(guard, waiters).await;
}

#[tokio::test]
async fn waiters_that_are_killed_cost_three_seconds_in_all() {
    const CROWD: usize = 20;
    let Some((_server, pooler)) = pooled().await else {
        return;
    };
    let locks = manager(&pooler.url()).await;
    let held = take(&locks, "key", LONG).await;
    let mut worker = Worker::locker(env!("CARGO_BIN_EXE_worker"), &pooler.url()).await;
    worker.send(&format!("crowd {CROWD} key apart")).await;
    waiting(&locks, CROWD).await;
    let next = waiter(&locks).await;
    worker.kill().await;
    sleep(CARRIED_OUT).await;
    release(held).await;
    let (took, next) = timed(next).await;
    assert!(took < Duration::from_millis(4500), "held up for {took:?}");
    release(next.unwrap()).await;
}

/// `PgBouncer` may give the connection of a client that has disconnected to the next one before all answers are in.
// Section: guarantees.md#one-holder-at-a-time
#[tokio::test]
async fn the_answer_to_a_client_that_is_gone_grants_nothing() {
    let Some(server) = server().await else { return };
    let settings = [("pool_mode", "transaction"), ("default_pool_size", "1")];
    let Some(pooler) = PgBouncer::start_with(TEST, &server, &settings).await else {
        return;
    };
    let [direct, behind] = [manager(&server.url()).await, manager(&pooler.url()).await];
    let held = take(&direct, "key", LONG).await;
    for _ in 0..3 {
        let gone = PostgresPeer::connect(pooler.addr()).await;
        gone.leave_after_one_of(&["SELECT 1", "SELECT 'granted', 5 FROM pg_sleep(0.3)"])
            .await;
        // The connection that gets the answer ends.
        let tries = async {
            loop {
                match behind.lock("key").wait(Duration::ZERO).acquire().await {
                    Err(LockError::Unavailable { .. }) => {}
                    other => return other,
                }
            }
        };
        let refused = within(TIME_LIMIT, tries).await;
        assert!(
            matches!(refused, Err(LockError::Contended { .. })),
            "{refused:?}"
        );
    }
    release(held).await;
}

/// A session stays with its connection of the server, as one that is direct does, and may listen.
#[tokio::test]
async fn waiters_are_notified_behind_a_pooler_of_sessions() {
    let Some(server) = server().await else { return };
    let settings = [("pool_mode", "session"), ("default_pool_size", "10")];
    let Some(pooler) = PgBouncer::start_with(TEST, &server, &settings).await else {
        return;
    };
    let config = LockConfig::new(format!("{}?wake=listen", pooler.url())).unwrap();
    let [ours, theirs] = [connect(config.clone()).await, connect(config).await];
    let turn = async || {
        let guard = take(&ours, "key", LONG).await;
        let next = waiter(&theirs).await;
        release(guard).await;
        let (took, next) = timed(next).await;
        release(next.unwrap()).await;
        took
    };
    one_turn_within(Duration::from_millis(900), turn).await;
}
