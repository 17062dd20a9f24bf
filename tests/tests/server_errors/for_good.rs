//! Errors that waiting cannot change: reported at once, and over once somebody has changed what was wrong.
//!
//! Section: guarantees.md#the-body-does-not-begin-without-the-lock

use std::time::{Duration, Instant};

use lock_runtime::LockError;
use tests::{Pulse, RedisServer, eventually, leaves_nothing, take, unique, within, work};
use tokio::time::sleep;

use crate::{FOUND, SECOND, SOON, Scene, TTL};

/// Nothing was waited for.
const AT_ONCE: Duration = SECOND;

#[tokio::test]
async fn a_key_of_another_type() {
    let scene = Scene::new(RedisServer::start().await).await;
    let key = unique("type");
    let owner = RedisServer::owner_key(&key);
    let fill = ["RPUSH", &owner, "somebody's"];
    scene.server.cmd(&fill).await;
    let (text, took) = scene.unavailable(&key, SOON).await;
    assert!(text.contains("WRONGTYPE"), "{text}");
    assert!(took < AT_ONCE, "{took:?}");
    assert_eq!(scene.server.traces(&key).await, [&*owner]);
    scene.server.cmd(&["DEL", &owner]).await;
    drop(within(FOUND, scene.take(&key)).await);
    scene.works().await;
}

#[tokio::test]
async fn a_key_that_becomes_one_of_another_type() {
    let scene = Scene::new(RedisServer::start().await).await;
    let key = unique("type");
    let owner = RedisServer::owner_key(&key);
    let guard = scene.take(&key).await;
    let acquire = scene.others.lock(&key).ttl(TTL).wait_forever().acquire();
    let waiter = tokio::spawn(acquire);
    scene.server.queued(&key, 1).await;
    scene.server.cmd(&["DEL", &owner]).await;
    let fill = ["RPUSH", &owner, "somebody's"];
    scene.server.cmd(&fill).await;
    // With its next question, once a second.
    let outcome = within(FOUND, waiter).await.expect("no panic");
    let text = outcome.expect_err("not a lock any more").to_string();
    assert!(text.contains("WRONGTYPE"), "{text}");
    within(TTL, guard.lost()).await;
    scene.server.cmd(&["DEL", &owner]).await;
    scene.works().await;
    leaves_nothing(&scene.server, &key, SOON).await;
}

/// A scene whose processes are a user that may lose rights.
async fn with_user() -> Scene {
    let server = RedisServer::start().await;
    let user = ["ACL", "SETUSER", "shop", "on", ">secret"];
    // Before Redis 7, a new user may listen to all channels.
    let all = ["~lock:*", "resetchannels", "&lock:*", "+@all"];
    server.cmd(&[&user[..], &all].concat()).await;
    let url = server.url_with_user("shop", "secret");
    Scene::at(server, &url).await
}

async fn rights(scene: &Scene, change: &[&str]) {
    let words = [&["ACL", "SETUSER", "shop"], change].concat();
    scene.server.cmd(&words).await;
}

#[tokio::test]
async fn a_command_that_is_forbidden_and_allowed_again_in_time() {
    let scene = with_user().await;
    let pulse = Pulse::default();
    let body = work(scene.take(&unique("held")).await, &pulse, TTL + SECOND);
    rights(&scene, &["-evalsha", "-eval"]).await;
    let (text, took) = scene.unavailable(&unique("new"), SOON).await;
    assert!(text.contains("NOPERM"), "{text}");
    assert!(took < AT_ONCE, "{took:?}");
    // A renewal falls due meanwhile.
    sleep(TTL * 2 / 5).await;
    rights(&scene, &["+evalsha", "+eval"]).await;
    let outcome = within(2 * TTL, body).await.expect("no panic");
    outcome.expect("renewed in time");
    scene.works().await;
}

// Section: guarantees.md#no-poll-of-the-body-starts-after-its-deadline
#[tokio::test]
async fn a_command_that_is_forbidden_until_the_lease_ends() {
    let scene = with_user().await;
    let key = unique("held");
    let pulse = Pulse::default();
    let body = work(scene.take(&key).await, &pulse, 2 * TTL);
    rights(&scene, &["-evalsha", "-eval"]).await;
    // Then nothing but a release makes the lock free again.
    let owner = RedisServer::owner_key(&key);
    scene.server.cmd(&["PERSIST", &owner]).await;
    let forbidden = Instant::now();
    let outcome = within(2 * TTL, body).await.expect("no panic");
    let error = outcome.expect_err("nothing renewed it");
    assert!(matches!(error, LockError::Lost { .. }), "{error}");
    let polls = pulse.polls();
    assert_eq!(polls.late, 0);
    let last = polls.last.expect("it was polled");
    assert!(last > forbidden + TTL / 2, "it was given up too early");
    assert!(last < forbidden + TTL, "it was held too long");
    rights(&scene, &["+evalsha", "+eval"]).await;
    drop(within(TTL + SECOND, scene.take(&key)).await);
    scene.works().await;
}

// Section: guarantees.md#nothing-is-left-behind
#[tokio::test]
async fn a_release_that_is_forbidden_and_allowed_again() {
    let scene = with_user().await;
    let (kept, left) = (unique("kept"), unique("left"));
    let guard = take(&scene.locks, &kept, 15 * TTL).await;
    let _holder = take(&scene.locks, &left, 15 * TTL).await;
    let request = scene.others.lock(&left).ttl(15 * TTL).wait_forever();
    let waiter = tokio::spawn(request.acquire());
    scene.server.queued(&left, 1).await;
    rights(&scene, &["-evalsha", "-eval"]).await;
    let released = within(AT_ONCE, guard.release_confirmed()).await;
    let text = released.expect_err("forbidden").to_string();
    assert!(text.contains("NOPERM"), "{text}");
    // With its next question; it cannot leave the queue either.
    let outcome = within(FOUND, waiter).await.expect("no panic");
    assert!(outcome.is_err());
    assert!(scene.server.owner(&kept).await.is_some());
    rights(&scene, &["+evalsha", "+eval"]).await;
    leaves_nothing(&scene.server, &kept, FOUND).await;
    let nobody = async || scene.server.waiting(&left).await == 0;
    eventually(FOUND, nobody).await;
    scene.works().await;
}

// Section: guarantees.md#nothing-is-left-behind
#[tokio::test]
async fn a_shutdown_does_not_wait_for_what_is_forbidden() {
    let scene = with_user().await;
    let guard = take(&scene.locks, &unique("kept"), 15 * TTL).await;
    rights(&scene, &["-evalsha", "-eval"]).await;
    guard.release();
    within(AT_ONCE, scene.locks.shutdown()).await;
}

#[tokio::test]
async fn a_channel_that_is_forbidden_and_allowed_again() {
    let scene = with_user().await;
    let key = unique("channel");
    let guard = scene.take(&key).await;
    let acquire = scene.others.lock(&key).ttl(TTL).wait_forever().acquire();
    let waiter = tokio::spawn(acquire);
    scene.server.queued(&key, 1).await;
    // The server ends the connections that listen to it.
    rights(&scene, &["resetchannels"]).await;
    let outcome = within(FOUND, waiter).await.expect("no panic");
    let text = outcome.expect_err("no grant would arrive").to_string();
    assert!(text.contains("permissions"), "{text}");
    let (text, took) = scene.unavailable(&unique("new"), SOON).await;
    assert!(text.contains("permissions"), "{text}");
    assert!(took < AT_ONCE, "{took:?}");
    rights(&scene, &["&lock:*"]).await;
    for locks in [&scene.locks, &scene.others] {
        let connected = async || locks.lock(unique("free")).acquire().await.is_ok();
        eventually(FOUND, connected).await;
    }
    assert!(guard.is_held(), "a connection came back in time");
    scene.works().await;
    // The refused waiter has left the queue.
    scene.server.queued(&key, 0).await;
}
