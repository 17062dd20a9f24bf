//! Holders that do not hear at once that they are asked.
//!
//! Section: guarantees.md#asking-to-yield

use std::time::Duration;

use lock_runtime::{LockGuard, LockManager};
use tests::{LONG, Proxy, RedisServer, TIME_LIMIT, connect, eventually, release, take, within};

/// A lease that ends within a test.
const SHORT: Duration = Duration::from_secs(1);

/// A holder that has lost its connection, while another manager asks for the lock again and again.
struct Scene {
    server: RedisServer,
    proxy: Proxy,
    others: LockManager,
    guard: LockGuard,
}

impl Scene {
    async fn new(ttl: Duration) -> Self {
        let server = RedisServer::start().await;
        let mut proxy = Proxy::start(server.addr());
        let holder = connect(&*proxy.url()).await;
        let others = connect(server.url()).await;
        let guard = take(&holder, "key", ttl).await;
        proxy.refuse().await;
        proxy.cut().await;
        Self {
            server,
            proxy,
            others,
            guard,
        }
    }
}

#[tokio::test]
async fn a_holder_that_cannot_be_reached_is_asked_again() {
    let mut scene = Scene::new(LONG).await;
    let before = scene.server.calls("publish").await;
    let others = scene.others.clone();
    let asking = tokio::spawn(async move { others.ask("key").await });
    let asked_twice = async || scene.server.calls("publish").await >= before + 2;
    eventually(TIME_LIMIT, asked_twice).await;
    assert!(!asking.is_finished() && !scene.guard.is_asked());
    scene.proxy.admit();
    let told = within(TIME_LIMIT, asking).await.expect("no panic");
    assert_eq!(told.expect("an answer"), 1);
    within(TIME_LIMIT, scene.guard.asked()).await;
    assert!(scene.guard.is_held());
    release(scene.guard).await;
}

#[tokio::test]
async fn a_holder_whose_lease_has_ended_is_asked_no_more() {
    let scene = Scene::new(SHORT).await;
    let told = within(TIME_LIMIT, scene.others.ask("key")).await;
    assert_eq!(told.expect("an answer"), 0);
    let status = within(TIME_LIMIT, scene.others.status("key")).await;
    assert!(!status.expect("an answer").is_held());
}

#[tokio::test]
async fn a_client_of_another_kind_is_not_waited_for() {
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let owner = RedisServer::owner_key("key");
    server
        .cmd(&["SET", &owner, "somebody", "PX", "60000"])
        .await;
    assert_eq!(
        within(TIME_LIMIT, locks.ask("key"))
            .await
            .expect("an answer"),
        0
    );
    assert!(locks.status("key").await.expect("an answer").is_held());
}
