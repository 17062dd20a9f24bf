//! Errors that pass: newcomers get them at the end of their wait, waiters wait on, holders keep their lock.
//!
//! Section: guarantees.md#the-body-does-not-begin-without-the-lock

use std::time::{Duration, Instant};

use tests::{
    Proxy, Pulse, RedisServer, connect, eventually, granted, leaves_nothing, release, take, unique,
    within, work,
};
use tokio::{net::TcpSocket, time::sleep};

use crate::{FOUND, SECOND, SOON, Scene, TTL, says};

async fn replica_of(server: &RedisServer, master: u16) {
    let port = master.to_string();
    server.cmd(&["REPLICAOF", "127.0.0.1", &port]).await;
}

async fn promote(server: &RedisServer) {
    server.cmd(&["REPLICAOF", "NO", "ONE"]).await;
}

/// Goes through everything while the server answers with `code`, from `begin` to `end`.
async fn passes(scene: &Scene, code: &str, begin: impl AsyncFnOnce(), end: impl AsyncFnOnce()) {
    let key = unique("held");
    let guard = scene.take(&key).await;
    let fence = guard.fencing_token();
    let pulse = Pulse::default();
    let body = work(guard, &pulse, TTL + SECOND);
    let waiter = scene.queue(&key).await;

    begin().await;
    let start = Instant::now();
    let patient = scene.others.lock(unique("patient")).ttl(TTL).wait(SOON);
    let patient = tokio::spawn(patient.acquire());
    let refused = async |wait| {
        let (text, took) = scene.unavailable(&unique("new"), wait).await;
        assert!(text.contains(code), "{text}");
        assert!(took >= wait, "{took:?} for {wait:?}");
        assert!(took < wait + 2 * SECOND, "{took:?} for {wait:?}");
    };
    tokio::join!(refused(Duration::ZERO), refused(SECOND / 3));
    // Long enough for a renewal to fall due.
    sleep((TTL * 2 / 5).saturating_sub(start.elapsed())).await;
    assert!(!patient.is_finished(), "it was granted, or did not wait");
    end().await;
    let lasted = start.elapsed();

    let patient = within(FOUND, patient).await.expect("no panic");
    assert!(patient.expect("the server serves again").is_held());
    let outcome = within(2 * TTL, body).await.expect("no panic");
    if lasted < TTL / 2 {
        outcome.unwrap_or_else(|error| panic!("{error}, after {lasted:?}"));
    }
    assert_eq!(pulse.polls().late, 0);
    let next = granted(FOUND, waiter).await;
    assert!(next.fencing_token() > fence);
    scene.works().await;
}

#[tokio::test]
async fn readonly() {
    let scene = Scene::new(RedisServer::start().await).await;
    // A master's address that is taken, and where nobody listens.
    let master = TcpSocket::new_v4().expect("a socket");
    let loopback = "127.0.0.1:0".parse().expect("an address");
    master.bind(loopback).expect("a free port");
    let port = master.local_addr().expect("bound").port();
    let begin = async || replica_of(&scene.server, port).await;
    let end = async || promote(&scene.server).await;
    passes(&scene, "READONLY", begin, end).await;
}

/// As behind a balancer, or a name, after a failover that no connection has noticed.
#[tokio::test]
async fn readonly_behind_an_address_that_leads_to_another_server_by_now() {
    let (old, new) = (RedisServer::start().await, RedisServer::start().await);
    replica_of(&new, old.port()).await;
    let mut proxy = Proxy::start(old.addr());
    let locks = connect(proxy.url()).await;
    let pulse = Pulse::default();
    let guard = take(&locks, "held", TTL).await;
    let fence = guard.fencing_token();
    let body = work(guard, &pulse, 2 * TTL);
    let there = async || !new.keys("lock:{held}").await.is_empty();
    eventually(SOON, there).await;

    proxy.lead_to(new.addr()).await;
    promote(&new).await;
    replica_of(&old, new.port()).await;
    let next = take(&locks, "free", TTL).await;
    assert!(next.fencing_token() > fence);
    release(next).await;
    let outcome = within(SOON, body).await.expect("no panic");
    outcome.expect("renewed on the new master");
    leaves_nothing(&new, "held", SOON).await;
}

/// How many connections the server has accepted so far.
async fn accepted(server: &RedisServer) -> u64 {
    let info = server.cmd(&["INFO", "stats"]).await;
    let info: String = redis::from_redis_value(info).expect("text");
    let field = "total_connections_received:";
    let count = info.lines().find_map(|line| line.strip_prefix(field));
    count.expect("it says so").parse().expect("a number")
}

#[tokio::test]
async fn readonly_for_longer_makes_no_storm_of_connections() {
    let hour = 3_600_000_000;
    for (scheme, parameters) in [
        ("redis", "layout=declared"),
        ("redis+setnx", ""),
        // The counter is ahead of the clock, so that opening writes nothing.
        ("redis", ""),
    ] {
        let server = RedisServer::start().await;
        let ahead = std::time::UNIX_EPOCH.elapsed().expect("later").as_micros() + hour;
        let fence = ["SET", RedisServer::FENCE_KEY, &ahead.to_string()];
        server.cmd(&fence).await;
        let url = format!("{scheme}://{}?{parameters}", server.addr());
        let locks = connect(&*url).await;
        release(take(&locks, "before", TTL).await).await;
        // Nobody listens there.
        replica_of(&server, 1).await;
        let before = accepted(&server).await;
        let waiting = locks.lock("key").ttl(TTL).wait(2 * SECOND).acquire();
        let text = waiting.await.expect_err("a replica").to_string();
        let connections = accepted(&server).await - before;
        assert!(text.contains("replica"), "{url}: {text}");
        assert!(connections < 45, "{url}: {connections} connections");
        promote(&server).await;
        release(within(FOUND, take(&locks, "after", TTL)).await).await;
    }
}

#[tokio::test]
async fn loading() {
    let server = RedisServer::builder()
        .arg("--key-load-delay", "2000")
        .arg("--rdbcompression", "no")
        .start()
        .await;
    // Four seconds, unless the delay ends; it answers every 2 MB.
    let fill = ["DEBUG", "POPULATE", "2000", "fill", "20000"];
    server.cmd(&fill).await;
    let mut connection = server.connection().await;
    let (reload, reloaded) = tokio::sync::oneshot::channel();
    tokio::spawn(async move {
        reloaded.await.expect("the test goes on");
        let mut command = redis::cmd("DEBUG");
        command.arg("RELOAD");
        command.query_async::<String>(&mut connection).await
    });
    let scene = Scene::new(server).await;
    let loads = async || says(&scene.server, "PING").await.contains("is loading");
    let begin = async || {
        reload.send(()).expect("somebody waits");
        eventually(SOON, loads).await;
    };
    let end = async || {
        let mut fast = redis::cmd("CONFIG");
        fast.arg(&["SET", "key-load-delay", "0"]);
        let mut connection = scene.server.connection().await;
        // Redis 6.2 changes nothing while it loads.
        let _ = fast.query_async::<()>(&mut connection).await;
        eventually(SOON, async || !loads().await).await;
    };
    passes(&scene, "LOADING", begin, end).await;
}

#[tokio::test]
async fn busy_with_a_script_of_somebody_else() {
    let server = RedisServer::builder().arg("--lua-time-limit", "50");
    let scene = Scene::new(server.start().await).await;
    let mut somebody = scene.server.connection().await;
    let begin = async || {
        tokio::spawn(async move {
            let mut script = redis::cmd("EVAL");
            script.arg("while true do end").arg(0);
            script.query_async::<()>(&mut somebody).await
        });
        let busy = async || says(&scene.server, "PING").await.contains("is busy");
        eventually(SOON, busy).await;
    };
    let end = async || {
        scene.server.cmd(&["SCRIPT", "KILL"]).await;
    };
    passes(&scene, "BUSY", begin, end).await;
}

#[tokio::test]
async fn paused() {
    let scene = Scene::new(RedisServer::start().await).await;
    let begin = async || {
        let pause = ["CLIENT", "PAUSE", "60000", "WRITE"];
        scene.server.cmd(&pause).await;
    };
    let end = async || {
        scene.server.cmd(&["CLIENT", "UNPAUSE"]).await;
    };
    passes(&scene, "answer", begin, end).await;
}

async fn memory(server: &RedisServer, bytes: &str) {
    server.cmd(&["CONFIG", "SET", "maxmemory", bytes]).await;
}

#[tokio::test]
async fn full_memory() {
    let scene = Scene::new(RedisServer::start().await).await;
    let begin = async || memory(&scene.server, "1").await;
    let end = async || memory(&scene.server, "0").await;
    passes(&scene, "OOM", begin, end).await;
}

#[tokio::test]
async fn full_memory_stops_newcomers_alone() {
    let scene = Scene::new(RedisServer::start().await).await;
    let key = unique("held");
    let pulse = Pulse::default();
    let guard = scene.take(&key).await;
    let body = work(guard, &pulse, TTL + SECOND);
    let waiter = scene.queue(&key).await;
    memory(&scene.server, "1").await;

    // Longer than the ttl: it is renewed.
    let outcome = within(2 * TTL, body).await.expect("no panic");
    outcome.expect("renewed");
    let next = granted(FOUND, waiter).await;
    let (text, _) = scene.unavailable(&key, SECOND / 2).await;
    assert!(text.contains("OOM"), "{text}");
    release(next).await;
    assert_eq!(scene.server.keys("lock:{*").await, [""; 0]);
    memory(&scene.server, "0").await;
    scene.works().await;
}
