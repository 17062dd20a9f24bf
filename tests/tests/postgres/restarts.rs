//! Servers that end and start again, while locks are held and waited for: leases count on, and waiters keep their positions.
//!
//! Section: postgres.md#what-it-promises

use std::time::Duration;

use tests::{
    LONG, PostgresServer, SCHEMA, TIME_LIMIT, Worker, eventually, release, take, timed, within,
};
use tokio::time::sleep;

use crate::{are_served_in_order, manager, server, waiter};

const TTL: Duration = Duration::from_secs(2);

/// Does something to the server while a lock is held and waited for.
async fn positions_survive(strike: impl AsyncFnOnce(&mut PostgresServer)) {
    let Some(mut server) = server().await else {
        return;
    };
    let [ours, theirs, others] = [
        manager(&server.url()).await,
        manager(&server.url()).await,
        manager(&server.url()).await,
    ];
    let guard = take(&ours, "key", LONG).await;
    let mut waiters = Vec::new();
    for locks in [&theirs, &others, &theirs, &ours] {
        waiters.push(waiter(locks).await);
    }
    strike(&mut server).await;
    // Each of them has found the server again.
    for locks in [&ours, &theirs, &others] {
        let request = locks.lock("other").wait_forever();
        release(within(TIME_LIMIT, request.acquire()).await.unwrap()).await;
    }
    assert!(guard.is_held());
    are_served_in_order(guard, waiters).await;
    // A crash may forget that other locks were released right before: their leases end later.
    let nothing = async || {
        let traces = server.traces(SCHEMA).await;
        !traces.iter().any(|it| it.ends_with("{key}"))
    };
    eventually(TIME_LIMIT, nothing).await;
}

#[tokio::test]
async fn positions_survive_a_crash_of_the_server() {
    positions_survive(async |server| server.restart().await).await;
}

#[tokio::test]
async fn positions_survive_a_restart() {
    positions_survive(async |server| server.restart_cleanly().await).await;
}

/// The server ends all connections then, and recovers as after a crash.
#[tokio::test]
async fn positions_survive_the_death_of_one_connection_s_process() {
    positions_survive(async |server| {
        let backends = server.backends().await;
        server.kill_backend(backends[0]).await;
    })
    .await;
}

#[tokio::test]
async fn positions_survive_a_stopped_server() {
    positions_survive(async |server| {
        server.stop();
        sleep(TTL).await;
        server.resume();
    })
    .await;
}

#[tokio::test]
async fn a_lease_counts_on_while_the_server_is_down() {
    let Some(mut server) = server().await else {
        return;
    };
    let locks = manager(&server.url()).await;
    let ttl = TTL.as_millis().to_string();
    let url = server.url();
    let args = ["holder", &url, "exclusive", "key", &ttl];
    let mut holder = Worker::spawn(env!("CARGO_BIN_EXE_worker"), args).await;
    let fence = holder.fence().await;
    holder.kill().await;
    server.kill().await;
    sleep(TTL).await;
    server.restart().await;
    // Beside the connection: its attempts come at most a second apart.
    let (took, guard) = timed(locks.lock("key").wait_forever().acquire()).await;
    assert!(took < TTL, "{took:?}: the lease began anew");
    assert!(guard.unwrap().fencing_token().get() > fence);
}

/// The lease has not ended, and nobody else gets the lock although the server has forgotten all connections.
#[tokio::test]
async fn a_grant_survives_the_crash_right_after_it() {
    let Some(mut server) = server().await else {
        return;
    };
    let locks = manager(&server.url()).await;
    for round in 0..5 {
        let key = format!("key-{round}");
        let guard = take(&locks, &key, LONG).await;
        server.restart().await;
        let others = manager(&server.url()).await;
        let tried = others.lock(&*key).try_once().acquire();
        assert!(within(TIME_LIMIT, tried).await.is_err(), "granted twice");
        assert!(guard.is_held());
    }
}

/// Longer than a connection listens that nobody waits on any more.
#[tokio::test]
async fn a_manager_that_has_waited_outlives_a_long_outage() {
    const OUTAGE: Duration = Duration::from_secs(12);
    let Some(mut server) = server().await else {
        return;
    };
    let locks = manager(&server.url()).await;
    let guard = take(&locks, "key", LONG).await;
    let next = waiter(&locks).await;
    release(guard).await;
    release(within(TIME_LIMIT, next).await.unwrap()).await;
    server.kill().await;
    sleep(OUTAGE).await;
    server.restart().await;
    // The crash may have forgotten the last release.
    let other = locks.lock("other").wait_forever().acquire();
    release(within(TIME_LIMIT, other).await.unwrap()).await;
}
