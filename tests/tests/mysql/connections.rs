//! Connections that end, and clients that stop.
//!
//! Section: mysql.md#waiting

use std::time::Duration;

use lock_runtime::LockConfig;
use tests::{LONG, Proxy, TIME_LIMIT, connect, eventually, queued, release, take, timed, within};

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
