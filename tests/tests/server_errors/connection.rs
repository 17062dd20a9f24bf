//! Connections that the server closes and scripts that it forgets: nobody notices.

use std::time::Duration;

use redis::from_redis_value;
use tests::{RedisServer, eventually, granted, leaves_nothing, release, unique, within};

use crate::{FOUND, SOON, Scene, TTL};

/// Waits until all connections are other ones than `before`, and subscribed.
async fn back(server: &RedisServer, before: &[String]) {
    let back = async || {
        let now = server.subscribers().await;
        now.len() == before.len() && !now.iter().any(|it| before.contains(it))
    };
    eventually(SOON, back).await;
}

#[tokio::test]
async fn the_subscription_is_killed() {
    let scene = Scene::new(RedisServer::start().await).await;
    let key = unique("killed");
    for _ in 0..5 {
        let guard = scene.take(&key).await;
        let waiter = scene.queue(&key).await;
        let before = scene.server.subscribers().await;
        assert_eq!(before.len(), 2);
        for number in &before {
            scene.server.cmd(&["CLIENT", "KILL", "ID", number]).await;
        }
        back(&scene.server, &before).await;
        // Who has asked again is granted the lock by a push.
        assert!(guard.is_held());
        guard.release();
        let next = granted(FOUND, waiter).await;
        release(next).await;
    }
    scene.works().await;
}

#[tokio::test]
async fn the_output_buffer_overruns() {
    // More than the answers of a whole test; the limit is checked where an answer does not fit a buffer of 16 kB.
    let limit = "pubsub 100kb 0 0";
    let server = RedisServer::builder().arg("--client-output-buffer-limit", limit);
    let scene = Scene::new(server.start().await).await;
    let key = unique("overrun");
    let flood = "x".repeat(1_000_000);
    for _ in 0..5 {
        let guard = scene.take(&key).await;
        let waiter = scene.queue(&key).await;
        let before = scene.server.subscribers().await;
        let channels = scene.server.cmd(&["PUBSUB", "CHANNELS"]).await;
        let channels: Vec<String> = from_redis_value(channels).expect("names");
        for channel in &channels {
            scene.server.cmd(&["PUBLISH", channel, &flood]).await;
        }
        // Its grant may be lost with the old connection, too.
        guard.release();
        let next = granted(FOUND, waiter).await;
        release(next).await;
        back(&scene.server, &before).await;
    }
    scene.works().await;
}

#[tokio::test]
async fn the_scripts_are_flushed_before_every_call() {
    let scene = Scene::new(RedisServer::start().await).await;
    let flush = async || scene.server.cmd(&["SCRIPT", "FLUSH"]).await;
    let key = unique("flushed");
    let ttl = Duration::from_millis(600);
    flush().await;
    let tried = scene.locks.lock(&key).ttl(ttl).wait(Duration::ZERO);
    let guard = tried.acquire().await.expect("a try is told no other");
    for _ in 0..5 {
        flush().await;
        // A renewal, or two.
        tokio::time::sleep(ttl / 2).await;
    }
    assert!(guard.is_held(), "not renewed");
    flush().await;
    let waiter = scene.queue(&key).await;
    flush().await;
    let busy = scene.locks.lock(&key).wait(Duration::ZERO).acquire().await;
    let text = busy.expect_err("held").to_string();
    assert!(text.contains("is held by"), "{text}");
    // An ask.
    flush().await;
    tokio::time::sleep(ttl).await;
    flush().await;
    let released = within(FOUND, guard.release_confirmed()).await;
    assert!(released.expect("an answer"));
    let next = granted(FOUND, waiter).await;
    flush().await;
    let gives_up = scene.locks.lock(&key).ttl(TTL).wait(ttl / 3).acquire();
    let text = gives_up.await.expect_err("held").to_string();
    assert!(text.contains("is held by"), "{text}");
    flush().await;
    next.release();
    leaves_nothing(&scene.server, &key, FOUND).await;
    let errors = scene.server.errors("NOSCRIPT").await;
    assert!(errors >= 8, "only {errors} calls found their script gone");
}
