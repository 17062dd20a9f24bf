//! What locks cost the servers: how many requests they are asked, of which kind, and how many events they send.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use lock_runtime::{Clock, LockConfig, LockGuard, LockManager};
use tests::{
    LONG, Proxy, TIME_LIMIT, Verdict, ZooKeeperServer, connect, eventually, poll_once, release,
    within,
};

use crate::{
    packets::{CREATE, DELETE, GET_CHILDREN, GET_DATA, MULTI, Packets},
    server,
};

/// How long a lock is held before its holder watches its own node.
const SHORT: Duration = Duration::from_millis(50);

/// What has gone over the connections of a proxy: requests by their kind, and events.
#[derive(Clone, Debug, Default)]
struct Traffic(Arc<Mutex<Counts>>);

#[derive(Debug, Default, PartialEq)]
struct Counts {
    requests: BTreeMap<i32, usize>,
    events: usize,
}

impl Traffic {
    /// Counts what passes from now on; nothing is on its way.
    fn of(proxy: &Proxy) -> Self {
        let this = Self::default();
        let (counts, packets) = (this.clone(), Packets::default());
        proxy.requests().inspect(move |bytes| {
            for packet in packets.read(bytes) {
                let operation = packet.operation();
                *counts.counts().requests.entry(operation).or_default() += 1;
            }
            Verdict::Pass
        });
        let (counts, packets) = (this.clone(), Packets::default());
        proxy.replies().inspect(move |bytes| {
            let events = packets
                .read(bytes)
                .iter()
                .filter(|it| it.is_event())
                .count();
            counts.counts().events += events;
            Verdict::Pass
        });
        this
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap()
    }

    /// What was counted since the last call.
    fn take(&self) -> Counts {
        std::mem::take(&mut *self.counts())
    }
}

impl Counts {
    /// Requests that create or delete nodes.
    fn writes(&self) -> usize {
        let counted = [CREATE, DELETE, MULTI].map(|it| self.requests.get(&it).copied());
        counted.into_iter().flatten().sum()
    }

    fn of<const N: usize>(requests: [(i32, usize); N], events: usize) -> Self {
        let requests = requests.into();
        Self { requests, events }
    }
}

struct Scene {
    server: ZooKeeperServer,
    proxy: Proxy,
    locks: LockManager,
    clock: Clock,
}

impl Scene {
    /// A manager whose clock stands still, so that no heartbeat is sent.
    async fn new() -> Option<Self> {
        let server = server().await?;
        let proxy = Proxy::start(server.addr());
        let clock = Clock::manual();
        let config = LockConfig::new(format!("zookeeper://{}/traffic", proxy.addr())).unwrap();
        let config = config.ttl(LONG).clock(clock.clone());
        let locks = connect(config.connect_timeout(TIME_LIMIT)).await;
        Some(Self {
            server,
            proxy,
            locks,
            clock,
        })
    }

    /// Begins all of these before the first answer comes in.
    async fn together<F: Future + Unpin>(&self, all: impl Iterator<Item = F>) -> Vec<F::Output> {
        // First, as releases begin when they are created.
        self.proxy.replies().hold();
        let mut all: Vec<_> = all.collect();
        for one in &mut all {
            assert!(poll_once(one).await.is_pending());
        }
        self.proxy.replies().pass();
        let mut results = Vec::new();
        for one in all {
            results.push(within(TIME_LIMIT, one).await);
        }
        results
    }

    /// Creates the container of a lock, with a node of somebody else, so that the server does not delete it.
    async fn prepare(&self, key: &str) {
        let guard = self.take(key).await;
        let path = format!("/traffic/lock/{key}/notes");
        self.server.peer().await.create(&path, "").await;
        release(guard).await;
    }

    async fn take(&self, key: &str) -> LockGuard {
        let request = self.locks.lock(key).ttl(LONG).wait_forever();
        within(TIME_LIMIT, request.acquire()).await.unwrap()
    }
}

// Section: zookeeper.md#what-it-creates
#[tokio::test]
async fn a_short_cycle_is_three_requests_and_no_event() {
    const CYCLES: usize = 20;
    let Some(scene) = Scene::new().await else {
        return;
    };
    scene.prepare("key").await;
    let traffic = Traffic::of(&scene.proxy);
    for _ in 0..CYCLES {
        release(scene.take("key").await).await;
    }
    let requests = [(DELETE, CYCLES), (GET_CHILDREN, CYCLES), (CREATE, CYCLES)];
    assert_eq!(traffic.take(), Counts::of(requests, 0));
}

#[tokio::test]
async fn a_longer_one_watches_its_own_node() {
    let Some(scene) = Scene::new().await else {
        return;
    };
    let guard = scene.take("key").await;
    let traffic = Traffic::of(&scene.proxy);
    scene.clock.advance(SHORT);
    let asked = Counts::of([(GET_DATA, 1)], 0);
    eventually(TIME_LIMIT, async || *traffic.counts() == asked).await;
    traffic.take();
    release(guard).await;
    assert_eq!(traffic.take(), Counts::of([(DELETE, 1)], 1));
}

// Section: zookeeper.md#how-a-lock-is-taken
#[tokio::test]
async fn locks_that_are_taken_together_cost_few_writes() {
    const LOCKS: usize = 64;
    let Some(scene) = Scene::new().await else {
        return;
    };
    let keys: Vec<_> = (0..LOCKS).map(|it| format!("key-{it}")).collect();
    for key in &keys {
        scene.prepare(key).await;
    }
    let traffic = Traffic::of(&scene.proxy);
    let acquires = keys.iter().map(|key| Box::pin(scene.take(key)));
    let guards = scene.together(acquires).await;
    let releases = guards
        .into_iter()
        .map(|it| Box::pin(it.release_confirmed()));
    for held in scene.together(releases).await {
        assert!(held.unwrap());
    }
    let counts = traffic.take();
    // Two calls that go at once, and one for all that have gathered meanwhile.
    assert!(counts.writes() <= 2 * 3, "{counts:?}");
    assert_eq!(counts.requests[&GET_CHILDREN], LOCKS, "{counts:?}");
    assert_eq!(counts.events, 0);
}

#[tokio::test]
async fn a_writer_behind_a_permit_that_was_asked_for_reads_it_once() {
    let Some(scene) = Scene::new().await else {
        return;
    };
    scene.prepare("key").await;
    let permit = scene.locks.lock("key").permits(2).ttl(LONG);
    let permit = within(TIME_LIMIT, permit.acquire()).await.unwrap();
    let asked = within(TIME_LIMIT, scene.locks.ask("key")).await;
    assert_eq!(asked.unwrap(), 1);
    let traffic = Traffic::of(&scene.proxy);
    let mut writer = Box::pin(scene.take("key"));
    assert!(poll_once(&mut writer).await.is_pending());
    let joins = Counts::of([(CREATE, 1), (GET_CHILDREN, 1), (GET_DATA, 1)], 0);
    eventually(TIME_LIMIT, async || *traffic.counts() == joins).await;
    release(permit).await;
    release(within(TIME_LIMIT, writer).await).await;
    let requests = [(CREATE, 1), (DELETE, 2), (GET_CHILDREN, 2), (GET_DATA, 1)];
    assert_eq!(traffic.take(), Counts::of(requests, 1));
}
