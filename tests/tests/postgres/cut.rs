//! Connections that break right before and right after each message, and calls that arrive late.
//!
//! Section: postgres.md#what-it-promises

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use lock_runtime::{LockGuard, LockManager};
use tests::{
    LONG, Lost, PostgresServer, Proxy, SCHEMA, TIME_LIMIT, Verdict, eventually, poll_once, queued,
    release, settled, take, take_turn, within,
};
use tokio::time::sleep;

use crate::{manager, server};

struct Scene {
    server: PostgresServer,
    proxy: Proxy,
    ours: LockManager,
    theirs: LockManager,
}

impl Scene {
    async fn new() -> Option<Self> {
        let server = server().await?;
        let proxy = Proxy::start(server.addr());
        Some(Self {
            ours: manager(&server.url_at(proxy.addr())).await,
            theirs: manager(&server.url()).await,
            proxy,
            server,
        })
    }

    async fn leaves_nothing(&self) {
        let nothing = async || self.server.traces(SCHEMA).await.is_empty();
        eventually(TIME_LIMIT, nothing).await;
    }

    /// The lock is taken, waited for, handed over both ways, and released.
    async fn turns(&self) {
        let guard = take(&self.ours, "key", LONG).await;
        let next = self.theirs.lock("key").ttl(LONG).wait_forever();
        let next = queued(&self.theirs, next).await;
        self.give(guard).await;
        let guard = within(TIME_LIMIT, next).await.unwrap();
        let mut next = self.ours.lock("key").ttl(LONG).wait_forever().acquire();
        assert!(poll_once(&mut next).await.is_pending());
        sleep(Duration::from_millis(20)).await;
        release(guard).await;
        self.give(within(TIME_LIMIT, next).await.unwrap()).await;
        self.leaves_nothing().await;
    }

    /// Releases a lock. If the first answer is lost, the second one says that it is not ours any more.
    async fn give(&self, guard: LockGuard) {
        assert!(guard.is_held());
        within(TIME_LIMIT, guard.release_confirmed()).await.unwrap();
    }

    /// The same while the connection breaks once, at the message of this number in one way.
    async fn turns_with_a_break(&self, lost: Lost, number: usize, verdict: Verdict) {
        let way = self.proxy.way(lost);
        let seen = AtomicUsize::new(0);
        way.inspect(move |_| {
            if seen.fetch_add(1, Ordering::Relaxed) == number {
                verdict
            } else {
                Verdict::Pass
            }
        });
        self.turns().await;
        way.ignore();
    }
}

#[tokio::test]
async fn locks_are_taken_and_handed_over_wherever_a_connection_breaks() {
    const MESSAGES: usize = 10;
    let Some(scene) = Scene::new().await else {
        return;
    };
    scene.turns().await;
    for lost in [Lost::Request, Lost::Reply] {
        for verdict in [Verdict::BreakBefore, Verdict::BreakAfter] {
            for number in 0..MESSAGES {
                scene.turns_with_a_break(lost, number, verdict).await;
            }
        }
    }
}

#[tokio::test]
async fn locks_are_taken_and_handed_over_wherever_a_server_falls_silent() {
    let Some(scene) = Scene::new().await else {
        return;
    };
    scene.turns().await;
    for number in [0, 1, 2, 4] {
        let verdict = Verdict::Unanswered;
        scene
            .turns_with_a_break(Lost::Request, number, verdict)
            .await;
    }
}

#[tokio::test]
async fn a_release_is_sent_until_it_is_confirmed() {
    let Some(scene) = Scene::new().await else {
        return;
    };
    for lost in [Lost::Reply, Lost::Request] {
        let guard = take(&scene.ours, "key", LONG).await;
        settled(&scene.ours).await;
        let mut released = Box::pin(async { guard.release_confirmed().await });
        scene.proxy.lose(lost, &mut released).await;
        within(TIME_LIMIT, released).await.unwrap();
        scene.leaves_nothing().await;
    }
}

#[tokio::test]
async fn an_acquisition_that_is_dropped_while_its_connection_breaks_leaves_nothing() {
    let Some(scene) = Scene::new().await else {
        return;
    };
    for lost in [Lost::Reply, Lost::Request] {
        let mut acquire = scene.ours.lock("key").ttl(LONG).wait_forever().acquire();
        scene.proxy.lose(lost, &mut acquire).await;
        drop(acquire);
        scene.leaves_nothing().await;
        take_turn(&scene.theirs, "key").await;
    }
}

#[tokio::test]
async fn a_turn_that_comes_while_there_is_no_connection_is_taken() {
    let Some(mut scene) = Scene::new().await else {
        return;
    };
    let guard = take(&scene.theirs, "key", LONG).await;
    let waiter = scene.ours.lock("key").ttl(LONG).wait_forever();
    let waiter = queued(&scene.ours, waiter).await;
    scene.proxy.refuse().await;
    scene.proxy.cut().await;
    release(guard).await;
    scene.proxy.admit();
    release(within(TIME_LIMIT, waiter).await.unwrap()).await;
}

/// The server comes to a call when its connection was replaced and its caller has gone away.
#[tokio::test]
async fn a_call_that_is_late_holds_nothing() {
    let Some(server) = server().await else { return };
    let proxy = Proxy::start(server.addr());
    let locks = manager(&server.url_at(proxy.addr())).await;
    take_turn(&locks, "key").await;
    let process = server.backends().await[0];
    server.stop_backend(process);
    let mut acquire = locks.lock("key").ttl(LONG).wait_forever().acquire();
    let before = proxy.requests().bytes();
    assert!(poll_once(&mut acquire).await.is_pending());
    eventually(TIME_LIMIT, async || proxy.requests().bytes() > before).await;
    drop(acquire);
    proxy.cut().await;
    let other = locks.lock("other").wait_forever().acquire();
    release(within(TIME_LIMIT, other).await.unwrap()).await;
    server.resume_backend(process);
    let ended = async || !server.backends().await.contains(&process);
    eventually(TIME_LIMIT, ended).await;
    assert_eq!(server.traces(SCHEMA).await, [""; 0]);
    take_turn(&locks, "key").await;
}

#[tokio::test]
async fn a_host_that_falls_silent_is_left_for_the_next_one() {
    let Some(server) = server().await else { return };
    let (slow, quick) = (Proxy::start(server.addr()), Proxy::start(server.addr()));
    let hosts = format!("{},{}", slow.addr(), quick.addr());
    let locks = manager(&format!("postgres://postgres@{hosts}/postgres")).await;
    take_turn(&locks, "warm").await;
    // Each of them in turn: one of them is in use.
    for silent in [&slow, &quick] {
        silent.requests().hold();
        let guard = locks.lock("key").ttl(LONG).wait_forever().acquire();
        release(within(TIME_LIMIT, guard).await.unwrap()).await;
        silent.requests().pass();
        take_turn(&locks, "key").await;
    }
}

/// Each of them has its call on the way, or its answer.
#[tokio::test]
async fn ten_connections_that_are_cut_at_once_leave_no_holder() {
    const CONNECTIONS: usize = 10;
    let Some(server) = server().await else { return };
    let mut ours = Vec::new();
    for _ in 0..CONNECTIONS {
        let proxy = Proxy::start(server.addr());
        let locks = manager(&server.url_at(proxy.addr())).await;
        take_turn(&locks, "warm").await;
        ours.push((proxy, locks));
    }
    for lost in [Lost::Request, Lost::Reply] {
        let mut asking = Vec::new();
        for (number, (proxy, locks)) in ours.iter().enumerate() {
            proxy.way(lost).hold();
            let key = format!("key-{}", number % 3);
            let mut acquire = locks.lock(key).ttl(LONG).wait_forever().acquire();
            assert!(poll_once(&mut acquire).await.is_pending());
            asking.push(acquire);
        }
        for (proxy, _) in &ours {
            within(TIME_LIMIT, proxy.way(lost).held()).await;
        }
        for (proxy, _) in &ours {
            proxy.cut().await;
            proxy.way(lost).pass();
        }
        // Half of them is not wanted any more.
        let wanted = asking.split_off(CONNECTIONS / 2);
        drop(asking);
        let mut turns = tokio::task::JoinSet::new();
        for acquire in wanted {
            turns.spawn(async move { release(acquire.await.unwrap()).await });
        }
        within(TIME_LIMIT, turns.join_all()).await;
        let nothing = async || server.traces(SCHEMA).await.is_empty();
        eventually(TIME_LIMIT, nothing).await;
        for number in 0..3 {
            take_turn(&ours[0].1, &format!("key-{number}")).await;
        }
    }
}
