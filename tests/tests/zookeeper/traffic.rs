//! What locks cost the servers: how many requests they are asked, of which kind, and how many events they send.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use lock_runtime::{Clock, LockConfig, LockGuard, LockManager};
use tests::{
    LONG, Proxy, TIME_LIMIT, Verdict, ZooKeeperServer, connect, eventually, release, within,
};

use crate::server;

/// The numbers of requests in the protocol of ZooKeeper.
const DELETE: i32 = 2;
const GET_DATA: i32 = 4;
const GET_CHILDREN: i32 = 12;
const CREATE: i32 = 15;

/// The number that events have in place of that of a request.
const EVENT: i32 = -1;

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
        let counts = this.clone();
        proxy.requests().inspect(packets(move |packet| {
            *counts
                .counts()
                .requests
                .entry(number(packet, 4))
                .or_default() += 1;
        }));
        let counts = this.clone();
        proxy.replies().inspect(packets(move |packet| {
            counts.counts().events += usize::from(number(packet, 0) == EVENT);
        }));
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
    fn of<const N: usize>(requests: [(i32, usize); N], events: usize) -> Self {
        let requests = requests.into();
        Self { requests, events }
    }
}

/// Shows each packet, without its length, to `look`.
fn packets(look: impl Fn(&[u8]) + Send + Sync) -> impl Fn(&mut Vec<u8>) -> Verdict + Send + Sync {
    let unread = Mutex::new(Vec::new());
    move |bytes| {
        let mut unread = unread.lock().unwrap();
        unread.extend_from_slice(bytes);
        while let Some((length, rest)) = unread.split_first_chunk() {
            let length = u32::from_be_bytes(*length) as usize;
            let Some(packet) = rest.get(..length) else {
                break;
            };
            look(packet);
            unread.drain(..4 + length);
        }
        Verdict::Pass
    }
}

fn number(packet: &[u8], at: usize) -> i32 {
    i32::from_be_bytes(packet[at..at + 4].try_into().unwrap())
}

struct Scene {
    _server: ZooKeeperServer,
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
            _server: server,
            proxy,
            locks,
            clock,
        })
    }

    async fn take(&self, key: &str) -> LockGuard {
        let request = self.locks.lock(key).ttl(LONG).wait_forever();
        within(TIME_LIMIT, request.acquire()).await.unwrap()
    }
}

#[tokio::test]
async fn a_short_cycle_is_three_requests_and_no_event() {
    const CYCLES: usize = 20;
    let Some(scene) = Scene::new().await else {
        return;
    };
    release(scene.take("key").await).await;
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
