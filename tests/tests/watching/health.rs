//! Whether the server can be reached, as a readiness probe asks.
//!
//! Section: guarantees.md#watching-a-lock

use std::time::{Duration, SystemTime};

use lock_runtime::inspect::Health;
use lock_runtime::{LockConfig, LockManager};
use tests::{Proxy, RedisServer, connect, eventually, within};
use tests::{Store, TIME_LIMIT, on_every_store};

/// What a probe may take when nobody answers: a second for the connection, and a machine that is busy.
const BOUND: Duration = Duration::from_secs(3);

async fn probe(locks: &LockManager) -> Health {
    within(BOUND, locks.health()).await
}

async fn a_store_that_answers_is_well(store: Store) {
    let locks = store.manager().await;
    let health = probe(&locks).await;
    assert!(health.connected && health.grants, "{health:?}");
    assert!(health.reachable == health.servers && health.servers > 0);
    assert!(health.round_trip.unwrap() < BOUND);
    assert_eq!(health.last_error, None);
}

async fn a_manager_that_was_shut_down_is_not_well(store: Store) {
    let locks = store.manager().await;
    within(TIME_LIMIT, locks.shutdown()).await;
    let health = probe(&locks).await;
    assert!(!health.connected && !health.grants && health.reachable == 0);
    assert_eq!(health.round_trip, None);
    assert!(health.last_error.unwrap().message.contains("shut down"));
}

on_every_store! {
    a_store_that_answers_is_well,
    a_manager_that_was_shut_down_is_not_well,
}

#[tokio::test]
async fn a_server_that_falls_silent_is_noticed_in_bounded_time() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr());
    let locks = connect(proxy.url()).await;
    proxy.replies().hold();
    let health = probe(&locks).await;
    assert!(!health.connected, "{health:?}");
    let message = health.last_error.unwrap().message;
    assert!(message.contains("does not answer"), "{message}");
    proxy.replies().pass();
}

#[tokio::test]
async fn a_server_that_comes_back_is_well_and_the_error_is_remembered() {
    let before = SystemTime::now();
    let server = RedisServer::start().await;
    let mut proxy = Proxy::start(server.addr());
    let config = LockConfig::new(proxy.url()).unwrap().pool_size(2);
    let locks = LockManager::connect(config).await.unwrap();
    proxy.refuse().await;
    proxy.cut().await;
    eventually(TIME_LIMIT, async || !probe(&locks).await.connected).await;
    let gone = probe(&locks).await;
    assert!(gone.last_error.is_some_and(|error| error.at >= before));
    proxy.admit();
    eventually(TIME_LIMIT, async || probe(&locks).await.connected).await;
    // Each of the two connections is asked, and both were broken.
    for _ in 0..2 {
        let back = probe(&locks).await;
        assert!(
            back.round_trip.is_some() && back.last_error.is_some(),
            "{back:?}"
        );
    }
}
