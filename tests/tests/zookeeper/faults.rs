//! Connections that break: no node is created twice or left behind, no position is lost.
//!
//! Section: zookeeper.md#what-failures-do

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use lock_runtime::{LockConfig, LockGuard, LockManager, LockRequest};
use tests::{
    LONG, Lost, Proxy, TIME_LIMIT, Verdict, ZooKeeperServer, connect, poll_once, queued, release,
    settled, take_turn, within,
};
use tokio::task::JoinSet;

use crate::{manager, server};

struct Scene {
    server: ZooKeeperServer,
    proxy: Proxy,
    ours: LockManager,
    theirs: LockManager,
}

impl Scene {
    async fn new() -> Option<Self> {
        let server = server().await?;
        let proxy = Proxy::start(server.addr());
        let url = format!("zookeeper://{}/faults", proxy.addr());
        Some(Self {
            ours: manager(&url, LONG).await,
            theirs: manager(&server.url("faults"), LONG).await,
            proxy,
            server,
        })
    }

    async fn queue(&self) -> Vec<String> {
        self.server.peer().await.children("/faults/lock/key").await
    }
}

fn request(locks: &LockManager) -> LockRequest {
    locks.lock("key").ttl(LONG).wait_forever()
}

#[tokio::test]
async fn a_create_whose_answer_is_lost_is_one_node() {
    let Some(scene) = Scene::new().await else {
        return;
    };
    take_turn(&scene.ours, "key").await;
    for lost in [Lost::Reply, Lost::Request] {
        let mut acquire = request(&scene.ours).acquire();
        scene.proxy.lose(lost, &mut acquire).await;
        let guard = within(TIME_LIMIT, acquire).await.unwrap();
        assert_eq!(scene.queue().await.len(), 1);
        release(guard).await;
        assert_eq!(scene.queue().await, [""; 0]);
    }
}

#[tokio::test]
async fn a_waiter_keeps_its_position() {
    let Some(scene) = Scene::new().await else {
        return;
    };
    let guard = take(&scene.theirs).await;
    let first = queued(&scene.ours, request(&scene.ours)).await;
    let mut second = queued(&scene.theirs, request(&scene.theirs)).await;
    let before = scene.queue().await;
    scene.proxy.cut().await;
    settled(&scene.ours).await;
    assert_eq!(scene.queue().await, before);
    release(guard).await;
    let first = within(TIME_LIMIT, first).await.unwrap();
    assert!(poll_once(&mut second).await.is_pending());
    release(first).await;
    release(within(TIME_LIMIT, second).await.unwrap()).await;
}

#[tokio::test]
async fn a_turn_that_comes_while_the_connection_is_cut_is_taken() {
    let Some(mut scene) = Scene::new().await else {
        return;
    };
    let guard = take(&scene.theirs).await;
    let waiter = queued(&scene.ours, request(&scene.ours)).await;
    scene.proxy.refuse().await;
    scene.proxy.cut().await;
    release(guard).await;
    scene.proxy.admit();
    release(within(TIME_LIMIT, waiter).await.unwrap()).await;
}

#[tokio::test]
async fn a_lock_is_held_over_another_connection() {
    let Some(scene) = Scene::new().await else {
        return;
    };
    let guard = take(&scene.ours).await;
    for _ in 0..3 {
        scene.proxy.cut().await;
        settled(&scene.ours).await;
        assert!(guard.is_held());
    }
    // And noticed when it is revoked.
    assert_eq!(scene.theirs.force_release("key").await.unwrap(), 1);
    within(Duration::from_secs(3), guard.lost()).await;
}

#[tokio::test]
async fn a_release_is_sent_until_it_is_confirmed() {
    let Some(scene) = Scene::new().await else {
        return;
    };
    for lost in [Lost::Reply, Lost::Request] {
        let guard = take(&scene.ours).await;
        settled(&scene.ours).await;
        let mut released = Box::pin(async { guard.release_confirmed().await });
        scene.proxy.lose(lost, &mut released).await;
        assert!(within(TIME_LIMIT, released).await.unwrap());
        assert_eq!(scene.queue().await, [""; 0]);
    }
}

#[tokio::test]
async fn whoever_is_dropped_meanwhile_leaves_nothing() {
    let Some(scene) = Scene::new().await else {
        return;
    };
    take_turn(&scene.ours, "key").await;
    for lost in [Lost::Reply, Lost::Request] {
        let mut acquire = request(&scene.ours).acquire();
        scene.proxy.lose(lost, &mut acquire).await;
        drop(acquire);
        settled(&scene.ours).await;
        tests::eventually(TIME_LIMIT, async || scene.queue().await.is_empty()).await;
    }
}

#[tokio::test]
async fn any_number_of_watches_goes_on_over_another_connection() {
    let Some(scene) = Scene::new().await else {
        return;
    };
    // More than the server takes in one packet.
    let keys: Vec<_> = (0..2_400).map(|it| format!("{it:0>1000}")).collect();
    let held = keys.iter().map(|key| scene.ours.lock(key).wait_forever());
    let mut held: JoinSet<_> = held.map(LockRequest::acquire).collect();
    let mut guards = Vec::new();
    while let Some(guard) = within(TIME_LIMIT, held.join_next()).await {
        guards.push(guard.unwrap().unwrap());
    }
    scene.proxy.cut().await;
    release(tests::take(&scene.ours, "other", LONG).await).await;
    assert!(guards.iter().all(LockGuard::is_held));
    let guard = guards.pop().unwrap();
    let key = guard.key().clone();
    assert_eq!(scene.theirs.force_release(key).await.unwrap(), 1);
    within(TIME_LIMIT, guard.lost()).await;
}

#[tokio::test]
async fn a_lock_that_is_forced_while_it_is_released_skips_the_cooldown() {
    let Some(scene) = Scene::new().await else {
        return;
    };
    let guard = scene.theirs.lock("key").min_hold(LONG).acquire();
    let guard = within(TIME_LIMIT, guard).await.unwrap();
    scene.proxy.replies().hold();
    let mut forced = Box::pin(scene.ours.force_release("key"));
    assert!(poll_once(&mut forced).await.is_pending());
    // It has looked, and found the holder.
    within(TIME_LIMIT, scene.proxy.replies().held()).await;
    release(guard).await;
    scene.proxy.replies().pass();
    assert_eq!(within(TIME_LIMIT, forced).await.unwrap(), 1);
    assert_eq!(scene.queue().await, [""; 0]);
}

#[tokio::test]
async fn a_status_names_a_holder_also_while_it_lets_go() {
    let Some(scene) = Scene::new().await else {
        return;
    };
    let guard = scene.theirs.lock("key").min_hold(LONG).acquire();
    let guard = within(TIME_LIMIT, guard).await.unwrap();
    scene.proxy.replies().hold();
    let mut status = Box::pin(scene.ours.status("key"));
    assert!(poll_once(&mut status).await.is_pending());
    within(TIME_LIMIT, scene.proxy.replies().held()).await;
    release(guard).await;
    scene.proxy.replies().pass();
    let status = within(TIME_LIMIT, status).await.unwrap();
    assert!(status.holders[0].cooling_down, "{status:?}");
}

#[tokio::test]
async fn a_connection_may_take_longer_than_a_request() {
    let Some(server) = server().await else { return };
    let proxy = Proxy::start(server.addr());
    let url = format!("zookeeper://me:secret@{}/slow", proxy.addr());
    // A request may take a sixth of the session's time.
    let config = LockConfig::new(&url).unwrap().ttl(Duration::from_secs(3));
    let config = config
        .connect_timeout(TIME_LIMIT)
        .unavailable_wait_forever();
    let locks = connect(config).await;
    take_turn(&locks, "key").await;
    // A connection consists of two.
    proxy.replies().delay(Duration::from_millis(300));
    proxy.cut().await;
    let request = locks.lock("key").wait(TIME_LIMIT);
    release(within(2 * TIME_LIMIT, request.acquire()).await.unwrap()).await;
}

#[tokio::test]
async fn a_session_goes_on_after_the_server_was_restored() {
    let Some(mut scene) = Scene::new().await else {
        return;
    };
    let url = format!("zookeeper://{}/restored", scene.proxy.addr());
    let config = LockConfig::new(&url).unwrap().ttl(Duration::from_secs(4));
    let locks = connect(config.unavailable_wait_forever()).await;
    for _ in 0..50 {
        take_turn(&locks, "key").await;
    }
    scene.server.restart_without_data().await;
    let request = locks.lock("key").wait_forever();
    let guard = within(TIME_LIMIT, request.acquire()).await.unwrap();
    scene.proxy.cut().await;
    let other = within(TIME_LIMIT, locks.lock("other").wait_forever().acquire());
    release(other.await.unwrap()).await;
    assert!(guard.is_held());
}

async fn take(locks: &LockManager) -> LockGuard {
    within(TIME_LIMIT, request(locks).acquire()).await.unwrap()
}

/// Whether a server welcomes a client to its session with these bytes.
fn is_welcome(bytes: &[u8]) -> bool {
    bytes.starts_with(&37_i32.to_be_bytes())
}

#[tokio::test]
async fn servers_that_answer_once_and_break_make_no_storm_of_connections() {
    let Some(server) = server().await else { return };
    let proxies = [(); 3].map(|()| Proxy::start(server.addr()));
    let hosts: Vec<_> = proxies.iter().map(|it| it.addr().to_string()).collect();
    let url = format!("zookeeper://{}/storm", hosts.join(","));
    let locks = manager(&url, LONG).await;
    let guard = within(TIME_LIMIT, request(&locks).acquire())
        .await
        .expect("it is free");
    let welcomes = Arc::new(AtomicUsize::new(0));
    for proxy in &proxies {
        let welcomes = Arc::clone(&welcomes);
        proxy.replies().inspect(move |bytes| {
            if is_welcome(bytes) {
                welcomes.fetch_add(1, Ordering::Relaxed);
                return Verdict::Pass;
            }
            Verdict::BreakAfter
        });
        proxy.cut().await;
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    let connections = welcomes.load(Ordering::Relaxed);
    assert!((2..60).contains(&connections), "{connections} connections");
    assert!(guard.is_held(), "each has answered a heartbeat");
    for proxy in &proxies {
        proxy.replies().ignore();
    }
    release(guard).await;
}

/// What a server answers that ends a session: to those who connect to it, or to their first request.
#[derive(Clone, Copy, Debug)]
enum Refusal {
    Welcome,
    Answer,
}

impl Refusal {
    /// Changes what a server says: whole packets, of which several may come together, and none at the end.
    fn apply(self, mut bytes: &mut [u8]) {
        while let Some((length, _)) = bytes.split_first_chunk() {
            let length = 4 + u32::from_be_bytes(*length) as usize;
            let Some((packet, rest)) = bytes.split_at_mut_checked(length) else {
                return;
            };
            self.apply_to(packet);
            bytes = rest;
        }
    }

    fn apply_to(self, packet: &mut [u8]) {
        const EXPIRED: i32 = -112;
        // The length, the version, and the time of the session; or the length, two numbers, and the error.
        match self {
            Self::Welcome if is_welcome(packet) => packet[8..12].fill(0),
            Self::Answer if !is_welcome(packet) => {
                packet[16..20].copy_from_slice(&EXPIRED.to_be_bytes());
            }
            _ => {}
        }
    }
}

#[tokio::test]
async fn servers_that_end_each_session_make_no_storm_of_connections() {
    let Some(server) = server().await else { return };
    let proxy = Proxy::start(server.addr());
    for refusal in [Refusal::Welcome, Refusal::Answer] {
        let locks = manager(&format!("zookeeper://{}/ends", proxy.addr()), LONG).await;
        take_turn(&locks, "key").await;
        let welcomes = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&welcomes);
        proxy.replies().inspect(move |bytes| {
            seen.fetch_add(usize::from(is_welcome(bytes)), Ordering::Relaxed);
            refusal.apply(bytes);
            Verdict::Pass
        });
        proxy.cut().await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        let connections = welcomes.load(Ordering::Relaxed);
        assert!((2..60).contains(&connections), "{connections}: {refusal:?}");
        proxy.replies().ignore();
        release(take(&locks).await).await;
    }
}
