//! Connections that the server closes and scripts that it forgets: nobody notices.
//!
//! Section: guarantees.md#the-lock-goes-on

use std::time::Duration;

use lock_runtime::LockConfig;
use redis::from_redis_value;
use tests::{
    Proxy, RedisServer, Worker, connect, eventually, granted, leaves_nothing, release, take,
    unique, within,
};

use crate::{FOUND, SOON, Scene, TTL};

/// So many wait at once that their answers are more than a server with small buffers keeps for a client.
const CROWD: usize = 400;
/// Longer than a crowd needs on a busy machine.
const LONG: Duration = Duration::from_secs(60);

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
    let scene = Scene::new(RedisServer::start().await).await;
    let option = "client-output-buffer-limit";
    // More than the answers of a whole test.
    let set = ["CONFIG", "SET", option, "pubsub 100kb 0 0"];
    scene.server.cmd(&set).await;
    let (listeners, before) = (
        scene.server.listeners().await,
        channels(&scene.server).await,
    );
    let mut waiter = Worker::locker(env!("CARGO_BIN_EXE_worker"), &scene.server.url()).await;
    let mut channels = channels(&scene.server).await;
    channels.retain(|it| !before.contains(it));
    let [channel] = &channels[..] else {
        panic!("a channel a process: {channels:?}");
    };
    let key = unique("overrun");
    // More than the system takes off the server's hands; some servers count what is left then.
    let flood = "x".repeat(20_000_000);
    for round in 0..5 {
        let guard = scene.take(&key).await;
        waiter.send(&format!("pass {round} {key}")).await;
        scene.server.queued(&key, 1).await;
        waiter.pause();
        scene.server.cmd(&["PUBLISH", channel, &flood]).await;
        let closed = async || scene.server.listeners().await == listeners;
        eventually(SOON, closed).await;
        waiter.resume();
        // Its grant may be lost with the old connection, too.
        let fence = guard.fencing_token().get();
        guard.release();
        assert!(within(FOUND, waiter.fence()).await > fence);
    }
    scene.works().await;
}

// Section: guarantees.md#the-lock-goes-on
#[tokio::test]
async fn the_answers_to_a_crowd_are_more_than_the_server_keeps() {
    let server = RedisServer::start().await;
    let holder = connect(server.url()).await;
    let keys: Vec<String> = (0..CROWD).map(|_| unique("crowd")).collect();
    let mut held = Vec::new();
    for key in &keys {
        held.push(take(&holder, key, LONG).await);
    }
    let option = "client-output-buffer-limit";
    let set = ["CONFIG", "SET", option, "pubsub 32kb 8kb 1"];
    server.cmd(&set).await;

    let config = LockConfig::new(server.url()).expect("a valid URL");
    let crowd = connect(config.pool_size(1).unavailable_wait_forever()).await;
    let ask = |key: &String| {
        let acquire = crowd.lock(key).ttl(LONG).wait_forever().acquire();
        tokio::spawn(async move { acquire.await.expect("an answer at last") })
    };
    let waiters: Vec<_> = keys.iter().map(ask).collect();
    for key in &keys {
        server.queued(key, 1).await;
    }
    for guard in held {
        guard.release();
    }
    for waiter in waiters {
        let guard = granted(SOON, waiter).await;
        assert!(guard.is_held());
        // The connection may end before the answer, so that the release is repeated.
        let released = within(SOON, guard.release_confirmed()).await;
        released.expect("an answer");
    }
}

async fn channels(server: &RedisServer) -> Vec<String> {
    let channels = server.cmd(&["PUBSUB", "CHANNELS"]).await;
    from_redis_value(channels).expect("names")
}

#[tokio::test]
async fn the_scripts_are_flushed_before_every_call() {
    let scene = Scene::new(RedisServer::start().await).await;
    let flush = async || scene.server.cmd(&["SCRIPT", "FLUSH"]).await;
    let key = unique("flushed");
    let ttl = Duration::from_millis(600);
    flush().await;
    let tried = scene.locks.lock(&key).ttl(ttl).wait(Duration::ZERO);
    let guard = tried
        .acquire()
        .await
        .expect("a try fails for no other reason");
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

/// The server's numbers begin anew when it starts.
#[tokio::test]
async fn a_stranger_who_has_the_number_of_an_old_connection_keeps_its_own() {
    let mut server = RedisServer::start().await;
    let mut proxy = Proxy::start(server.addr());
    for _ in 0..50 {
        server.cmd(&["PING"]).await;
    }
    let locks = connect(&proxy.url()).await;
    let subscribers = server.subscribers().await;
    let number: i64 = subscribers[0].parse().expect("a number");
    proxy.refuse().await;
    server.restart().await;
    let mut id = redis::cmd("CLIENT");
    id.arg("ID");
    let mut stranger = loop {
        let mut connection = server.connection().await;
        let ours: i64 = id.query_async(&mut connection).await.expect("a number");
        assert!(ours <= number, "its numbers do not begin anew");
        if ours == number {
            break connection;
        }
    };
    proxy.admit();
    release(take(&locks, &unique("back"), TTL).await).await;
    let answer = id.query_async::<i64>(&mut stranger).await;
    assert_eq!(answer.expect("its connection was closed"), number);
}

/// What it still has on its way must not arrive late.
#[tokio::test]
async fn an_old_connection_is_closed_where_it_is_known_to_be_ours() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr());
    let set = ["ACL", "SETUSER", "shop"];
    let all = ["on", ">secret", "~lock:*", "&lock:*", "+@all"];
    server.cmd(&[&set[..], &all].concat()).await;
    let locks = connect(&format!("redis://shop:secret@{}", proxy.addr())).await;
    // Before Redis 7 the commands about clients are counted as one.
    let count = async || server.calls("client|kill").await + server.calls("client").await;
    let mut closed = Vec::new();
    for right in ["+info", "-info", "-info"] {
        server.cmd(&[&set[..], &[right]].concat()).await;
        let before = count().await;
        proxy.cut().await;
        release(take(&locks, &unique("back"), TTL).await).await;
        closed.push(count().await - before);
    }
    assert_eq!(closed[0], closed[1] + 1, "{closed:?}");
    assert_eq!(closed[1], closed[2], "{closed:?}");
}

// Section: guarantees.md#nothing-is-left-behind
#[tokio::test]
async fn a_shutdown_does_not_wait_for_a_server_that_is_gone() {
    let mut scene = Scene::new(RedisServer::start().await).await;
    let key = unique("gone");
    let _guard = scene.take(&key).await;
    let waiter = scene.queue(&key).await;
    scene.server.kill().await;
    // It cannot leave the queue.
    within(2 * TTL, scene.others.shutdown()).await;
    waiter.abort();
}
