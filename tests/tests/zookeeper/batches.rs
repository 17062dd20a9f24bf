//! Locks that are taken and released together while connections break: each is taken once, and nothing stays.
//!
//! Section: zookeeper.md#what-failures-do

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use lock_runtime::{LockConfig, LockGuard, LockManager};
use tests::{
    LONG, Proxy, TIME_LIMIT, Verdict, ZooKeeperServer, connect, eventually, poll_once, take_turn,
    within,
};

use tokio::task::JoinSet;

use crate::{
    packets::{MULTI, Packets},
    server,
};

const LOCKS: usize = 12;

/// Long enough for a slow machine; a request may take a sixth of it.
const SESSION: Duration = Duration::from_secs(6);

fn keys() -> impl Iterator<Item = String> {
    (0..LOCKS).map(|it| format!("key-{it}"))
}

/// Has a proxy do this to the first transaction that passes; whether there was one.
fn break_at_a_transaction(proxy: &Proxy, verdict: Verdict) -> Arc<AtomicBool> {
    let met = Arc::new(AtomicBool::new(false));
    let (seen, packets) = (Arc::clone(&met), Packets::default());
    proxy.requests().inspect(move |bytes| {
        let is_transaction = packets.read(bytes).iter().any(|it| it.operation() == MULTI);
        if is_transaction && !seen.swap(true, Ordering::SeqCst) {
            verdict
        } else {
            Verdict::Pass
        }
    });
    met
}

/// Takes all locks at once.
async fn take_all(locks: &LockManager) -> Vec<LockGuard> {
    let acquire = |key| locks.lock(key).ttl(LONG).wait_forever().acquire();
    let mut acquires: JoinSet<_> = keys().map(acquire).collect();
    let mut guards = Vec::new();
    while let Some(guard) = within(TIME_LIMIT, acquires.join_next()).await {
        guards.push(guard.unwrap().unwrap());
    }
    guards
}

async fn release_all(guards: Vec<LockGuard>) {
    let releases = guards.into_iter().map(LockGuard::release_confirmed);
    let mut releases: JoinSet<_> = releases.collect();
    while let Some(released) = within(TIME_LIMIT, releases.join_next()).await {
        assert!(released.unwrap().unwrap(), "it was held");
    }
}

/// How many nodes are in each queue.
async fn nodes(server: &ZooKeeperServer, chroot: &str) -> Vec<usize> {
    let mut peer = server.peer().await;
    let mut counts = Vec::new();
    for key in keys() {
        let path = format!("/{chroot}/lock/{key}");
        counts.push(peer.children(&path).await.len());
    }
    counts
}

async fn manager(hosts: &str, chroot: &str) -> LockManager {
    let config = LockConfig::new(format!("zookeeper://{hosts}/{chroot}")).unwrap();
    let config = config.ttl(SESSION).connect_timeout(TIME_LIMIT);
    connect(config.unavailable_wait_forever()).await
}

#[tokio::test]
async fn a_transaction_or_its_answer_that_is_lost_takes_each_lock_once() {
    let Some(server) = server().await else { return };
    let proxy = Proxy::start(server.addr());
    let locks = manager(&proxy.addr().to_string(), "lost").await;
    for verdict in [Verdict::BreakBefore, Verdict::BreakAfter] {
        // Which calls go together depends on threads; a container is known for a second.
        let mut met = Arc::default();
        while !AtomicBool::load(&met, Ordering::SeqCst) {
            release_all(take_all(&locks).await).await;
            met = break_at_a_transaction(&proxy, verdict);
            let guards = take_all(&locks).await;
            proxy.requests().ignore();
            assert_eq!(nodes(&server, "lost").await, [1; LOCKS]);
            assert!(guards.iter().all(LockGuard::is_held));
            release_all(guards).await;
            assert_eq!(nodes(&server, "lost").await, [0; LOCKS]);
        }
    }
}

#[tokio::test]
async fn a_transaction_or_its_answer_that_is_lost_releases_each_lock() {
    let Some(server) = server().await else { return };
    let proxy = Proxy::start(server.addr());
    let locks = manager(&proxy.addr().to_string(), "releases").await;
    for verdict in [Verdict::BreakBefore, Verdict::BreakAfter] {
        let mut met = Arc::default();
        while !AtomicBool::load(&met, Ordering::SeqCst) {
            let guards = take_all(&locks).await;
            met = break_at_a_transaction(&proxy, verdict);
            release_all(guards).await;
            proxy.requests().ignore();
            assert_eq!(nodes(&server, "releases").await, [0; LOCKS]);
        }
    }
}

#[tokio::test]
async fn a_transaction_that_arrives_after_its_connection_was_given_up_creates_nothing() {
    let Some(server) = server().await else { return };
    let proxies = [(); 2].map(|()| Proxy::start(server.addr()));
    let hosts = proxies.each_ref().map(|it| it.addr().to_string());
    let locks = manager(&hosts.join(","), "late").await;
    let mut met = Arc::default();
    while !AtomicBool::load(&met, Ordering::SeqCst) {
        release_all(take_all(&locks).await).await;
        for proxy in &proxies {
            proxy.requests().hold();
        }
        let mut taken = Box::pin(take_all(&locks));
        assert!(poll_once(&mut taken).await.is_pending());
        let late = tokio::select! {
            () = proxies[0].requests().held() => 0,
            () = proxies[1].requests().held() => 1,
        };
        proxies[1 - late].requests().pass();
        let guards = within(TIME_LIMIT, taken).await;
        release_all(guards).await;

        let late = &proxies[late];
        met = break_at_a_transaction(late, Verdict::Pass);
        let before = late.requests().bytes();
        late.requests().pass();
        eventually(TIME_LIMIT, async || late.requests().bytes() > before).await;
        late.requests().ignore();
        take_turn(&locks, "other").await;
        assert_eq!(nodes(&server, "late").await, [0; LOCKS]);
    }
}
