//! A chain ends in the middle: by force, with the lock, its connection or its process.
//!
//! Section: guarantees.md#a-lock-passes-through-a-process-without-the-server

use std::{
    cell::Cell,
    time::{Duration, Instant},
};

use lock_runtime::LockError;
use tests::{LONG, Proxy, RedisServer, TIME_LIMIT, Worker, connect, eventually, take, within};
use tokio::sync::watch;

use crate::{KEY, Scene};

#[tokio::test]
async fn a_forced_release_ends_one_and_the_others_keep_their_positions() {
    let mut scene = Scene::new().await;
    let (a, b, guard) = (
        scene.manager().await,
        scene.manager().await,
        scene.hold().await,
    );
    let forced = tokio::spawn({
        let request = a.lock(KEY).ttl(LONG).wait_forever();
        request.run(async |_| std::future::pending::<()>().await)
    });
    scene.server.queued(KEY, 1).await;
    scene.join(&a, &["a1", "a2", "a3"]).await;
    scene.join(&b, &["b1", "b2", "b3"]).await;
    guard.release();
    scene.server.queued(KEY, 3).await;
    assert_eq!(b.force_release(KEY).await.unwrap(), 1);
    let lost = within(TIME_LIMIT, forced).await.unwrap();
    assert!(matches!(lost, Err(LockError::Lost { .. })), "{lost:?}");
    scene.all().await;
    let mut order = scene.order();
    assert_eq!(order.len(), 6, "{order:?}");
    order.retain(|name| name.starts_with('a'));
    assert_eq!(order, ["a1", "a2", "a3"]);
}

#[tokio::test]
async fn all_followers_are_notified_of_the_loss_of_the_lock() {
    let mut scene = Scene::new().await;
    let (a, b, guard) = (
        scene.manager().await,
        scene.manager().await,
        scene.hold().await,
    );
    let ttl = Duration::from_millis(600);
    let lost = tokio::spawn({
        let request = a.lock(KEY).ttl(ttl).wait_forever();
        request.run(async |_| std::future::pending::<()>().await)
    });
    scene.server.queued(KEY, 1).await;
    scene
        .join_as(&a, &["a1", "a2"], |it| {
            it.ttl(Duration::from_millis(600)).wait_forever()
        })
        .await;
    guard.release();
    scene.server.queued(KEY, 0).await;
    // As when the server has forgotten it.
    scene
        .server
        .cmd(&["DEL", &RedisServer::owner_key(KEY)])
        .await;
    let taken = take(&b, KEY, LONG).await;
    let lost = within(TIME_LIMIT, lost).await.unwrap();
    assert!(matches!(lost, Err(LockError::Lost { .. })), "{lost:?}");
    scene.server.queued(KEY, 2).await;
    assert!(scene.order().is_empty(), "they wait again");
    let fence = taken.fencing_token().get();
    taken.release();
    scene.all().await;
    assert_eq!(scene.order(), ["a1", "a2"]);
    assert!(scene.had.lock().unwrap()[0].1 > fence);
}

/// A process with a chain, and one that waits behind it. The process stops before it hears
/// of its grant.
async fn stopped_chain() -> (Scene, Worker) {
    let mut scene = Scene::new().await;
    let program = env!("CARGO_BIN_EXE_worker");
    let mut other = Worker::locker(program, &scene.server.url()).await;
    let (b, guard) = (scene.manager().await, scene.hold().await);
    for position in 1..=20 {
        other.send(&format!("pass {position} {KEY}")).await;
        scene.server.queued(KEY, position).await;
    }
    scene.join(&b, &["b1", "b2"]).await;
    other.pause();
    guard.release();
    // All of them are handed it, and none is there.
    scene.server.queued(KEY, 2).await;
    (scene, other)
}

#[tokio::test]
async fn a_process_that_stops_before_its_chain_begins_costs_one_grant() {
    let (mut scene, mut other) = stopped_chain().await;
    let started = Instant::now();
    scene.all().await;
    let took = started.elapsed();
    assert!(took < Duration::from_secs(6), "{took:?}");
    other.resume();
    let mut last = scene.had.lock().unwrap()[1].1;
    for position in 1..=20 {
        let text = within(TIME_LIMIT, other.line()).await;
        let fence = text.strip_prefix(&format!("{position} granted "));
        let fence: u64 = fence.unwrap_or_else(|| panic!("{text}")).parse().unwrap();
        assert!(fence > last, "{text}, after {last}");
        last = fence;
    }
}

/// For how many ms the lock is taken.
async fn left(scene: &Scene) -> i64 {
    let left = scene
        .server
        .cmd(&["PTTL", &RedisServer::owner_key(KEY)])
        .await;
    redis::from_redis_value(left).unwrap()
}

/// Returns when the lease of the lock has been renewed.
async fn renewed(scene: &Scene) {
    let least = Cell::new(i64::MAX);
    eventually(TIME_LIMIT, async || {
        let left = left(scene).await;
        let before = least.replace(least.get().min(left));
        // Between two looks it only becomes less.
        left > before.saturating_add(100)
    })
    .await;
}

/// A process that hands a lock over within itself, in leases of a minute, and stops meanwhile.
#[tokio::test]
async fn a_process_that_stops_in_a_chain_costs_one_grant() {
    const TURNS: u64 = 60;
    const GRANT: i64 = 3_000;
    let mut scene = Scene::new().await;
    let program = env!("CARGO_BIN_EXE_worker");
    let mut other = Worker::locker(program, &scene.server.url()).await;
    let b = scene.manager().await;
    // A holder that has the lock for long on a busy machine renews it for all of its lease, as everybody may.
    for attempt in 1.. {
        let guard = scene.hold().await;
        other.send(&format!("turns {TURNS} {KEY} 30")).await;
        scene.server.queued(KEY, TURNS).await;
        scene.join(&b, &["b1", "b2"]).await;
        guard.release();
        renewed(&scene).await;
        other.pause();
        if left(&scene).await <= GRANT {
            break;
        }
        assert!(attempt < 5, "they cost {} ms", left(&scene).await);
        other.resume();
        scene.all().await;
        scene.server.queued(KEY, 0).await;
        scene.had.lock().unwrap().clear();
    }
    let stopped = Instant::now();
    scene.all().await;
    let took = stopped.elapsed();
    assert!(took < Duration::from_secs(6), "{took:?}");
    assert_eq!(scene.order(), ["b1", "b2"]);
}

#[tokio::test]
async fn a_process_that_dies_in_a_chain_costs_one_grant() {
    let (mut scene, mut other) = stopped_chain().await;
    other.kill().await;
    let started = Instant::now();
    scene.all().await;
    let took = started.elapsed();
    assert!(took < Duration::from_secs(6), "{took:?}");
}

#[tokio::test]
async fn a_connection_that_breaks_in_a_chain_costs_nobody_its_position() {
    let mut scene = Scene::new().await;
    scene.may_go = watch::Sender::new(0);
    let proxy = Proxy::start(scene.server.addr());
    let (a, b, guard) = (
        connect(proxy.url()).await,
        scene.manager().await,
        scene.hold().await,
    );
    let mut names: Vec<_> = (1..=8).map(|number| format!("a{number}")).collect();
    names.extend((1..=4).map(|number| format!("b{number}")));
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    scene.join(&a, &names[..8]).await;
    scene.join(&b, &names[8..]).await;
    guard.release();
    for count in 1..=4 {
        scene.entered(count).await;
        proxy.cut().await;
        // Those who have not had it are back in the queue before it is handed over.
        scene.server.queued(KEY, 12 - count as u64).await;
        scene.may_go.send_replace(count);
    }
    scene.may_go.send_replace(usize::MAX);
    scene.all().await;
    assert_eq!(scene.order(), names);
}
