//! A leader that is cut off from the other members together with some of its clients.
//!
//! Section: etcd.md#what-it-promises

use std::time::{Duration, Instant};

use lock_runtime::{LockGuard, LockManager};
use tests::{EtcdCluster, EtcdServer, Proxy, Pulse, TIME_LIMIT, eventually, within};
use tokio::task::JoinSet;

use crate::{TTL, patient};

const KEYS: [&str; 4] = ["one", "two", "three", "four"];

/// A network between some clients and the members, the first of which stands apart.
struct Side {
    proxies: Vec<Proxy>,
    locks: LockManager,
}

impl Side {
    async fn of(cluster: &EtcdCluster) -> Self {
        let proxy = |member: &EtcdServer| Proxy::start(member.addr());
        let proxies: Vec<_> = cluster.members.iter().map(proxy).collect();
        let hosts: Vec<_> = proxies.iter().map(|it| it.addr().to_string()).collect();
        let locks = patient(&format!("etcd://{}", hosts.join(","))).await;
        Self { proxies, locks }
    }

    /// Loses what goes between these clients and those members.
    fn cut_off(&self, members: impl IntoIterator<Item = usize>) {
        for member in members {
            self.proxies[member].requests().hold();
            self.proxies[member].replies().hold();
        }
    }

    fn join(&self) {
        for proxy in &self.proxies {
            proxy.requests().pass();
            proxy.replies().pass();
        }
    }
}

/// A body that is polled while it holds a lock; when its last poll began.
async fn hold(guard: LockGuard) -> Option<Instant> {
    let pulse = Pulse::default();
    let _ = guard.hold(pulse.beat(&guard)).await;
    pulse.polls().last
}

/// When the other side got the lock.
async fn get(waiter: impl Future<Output = Result<LockGuard, lock_runtime::LockError>>) -> Instant {
    let guard = within(3 * TIME_LIMIT, waiter).await.unwrap();
    let got = Instant::now();
    guard.release();
    got
}

/// Cuts off the leader with the clients that hold all locks; how long before the grant to another client the last
/// poll of each body was.
async fn trial(cluster: &EtcdCluster, inside: &Side, outside: &Side, number: u32) -> Vec<Duration> {
    cluster.lead(0).await;
    let (mut holders, mut waiters) = (JoinSet::new(), JoinSet::new());
    for key in KEYS {
        let taken = inside.locks.lock(key).ttl(TTL).wait_forever().acquire();
        let guard = within(3 * TIME_LIMIT, taken).await.unwrap();
        holders.spawn(async move { (key, hold(guard).await) });
        let waiter = outside.locks.lock(key).ttl(TTL).wait_forever();
        waiters.spawn(async move { (key, get(waiter.acquire()).await) });
        let waits = async || {
            let status = inside.locks.status(key).await;
            status.is_ok_and(|it| it.waiting == 1)
        };
        eventually(3 * TIME_LIMIT, waits).await;
    }
    // Somewhere between two renewals.
    tokio::time::sleep(TTL.mul_f64(fastrand::f64())).await;
    cluster.cut_off();
    inside.cut_off([1, 2]);
    outside.cut_off([0]);
    if number % 2 == 1 {
        // They connect to the leader again.
        inside.proxies[0].cut().await;
    }
    let mut got = within(4 * TIME_LIMIT, waiters.join_all()).await;
    let mut ended = within(TIME_LIMIT, holders.join_all()).await;
    cluster.join();
    inside.join();
    outside.join();
    got.sort_unstable();
    ended.sort_unstable();
    let pairs = got.into_iter().zip(ended);
    pairs
        .map(|((key, got), (_, last))| {
            let last = last.expect("the body was polled");
            let gap = got.checked_duration_since(last);
            gap.unwrap_or_else(|| panic!("{key}: {:?} too late", last - got))
        })
        .collect()
}

async fn trials(test: &str, count: u32) {
    let Some(cluster) = EtcdCluster::start_apart(test, 3).await else {
        return;
    };
    let (inside, outside) = (Side::of(&cluster).await, Side::of(&cluster).await);
    let mut gaps = Vec::new();
    for number in 0..count {
        let trial = trial(&cluster, &inside, &outside, number).await;
        println!("trial {number}: {trial:?}");
        gaps.extend(trial);
    }
    gaps.sort_unstable();
    println!(
        "{} locks in {count} trials: the last poll was {:?} to {:?} before the next grant",
        gaps.len(),
        gaps[0],
        gaps[gaps.len() - 1]
    );
}

#[tokio::test]
async fn nobody_overlaps_while_a_leader_is_cut_off_together_with_clients() {
    trials("a leader that is cut off with clients", 2).await;
}

/// The same for longer.
#[tokio::test]
#[ignore = "takes five minutes: `make torture-etcd`"]
async fn nobody_overlaps_while_a_leader_is_cut_off_together_with_clients_for_long() {
    trials("a leader that is cut off with clients, often", 30).await;
}
