//! A thousand observers of leaders that resign, are killed or stop: each sees every leader that lasts, in order.
//!
//! `LOCK_CHANGES` is the number of leaders; `make elections` has a thousand on each store.
//!
//! Section: guarantees.md#elections

use std::collections::{HashMap, HashSet};
use std::env;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use lock_runtime::Leaders;
use tests::{
    EtcdServer, Home, MysqlHome, PostgresHome, RedisServer, TIME_LIMIT, Worker, ZooKeeperServer,
    connect, within,
};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::{ELECTION, observe};

const OBSERVERS: usize = 1_000;
const MANAGERS: usize = 20;
const CANDIDATES: usize = 4;
/// How long a leader leads that everybody has to see: a little longer than a second.
const LASTS: Duration = Duration::from_millis(1_050);

#[tokio::test]
async fn on_redis_a_thousand_observers_see_every_leader_that_lasts() {
    let server = RedisServer::start().await;
    a_thousand_observers_see_every_leader_that_lasts(Place {
        url: &server.url(),
        ttl: 1_500,
        exact: true,
    })
    .await;
}

#[tokio::test]
#[ignore = "`make elections` runs it"]
async fn on_postgres_a_thousand_observers_see_every_leader_that_lasts() {
    let Some(home) = PostgresHome::start().await else {
        return;
    };
    a_thousand_observers_see_every_leader_that_lasts(Place {
        url: &home.url(),
        ttl: 1_500,
        exact: true,
    })
    .await;
}

#[tokio::test]
#[ignore = "`make elections` runs it"]
async fn on_mysql_a_thousand_observers_see_every_leader_that_lasts() {
    let Some(home) = MysqlHome::start().await else {
        return;
    };
    a_thousand_observers_see_every_leader_that_lasts(Place {
        url: &home.url(),
        ttl: 1_500,
        exact: true,
    })
    .await;
}

#[tokio::test]
#[ignore = "`make elections` runs it"]
async fn on_etcd_a_thousand_observers_see_every_leader_that_lasts() {
    let Some(server) = EtcdServer::start("a thousand leaders").await else {
        return;
    };
    a_thousand_observers_see_every_leader_that_lasts(Place {
        url: &server.url(),
        ttl: 2_000,
        exact: false,
    })
    .await;
}

#[tokio::test]
#[ignore = "`make elections` runs it"]
async fn on_zookeeper_a_thousand_observers_see_every_leader_that_lasts() {
    let Some(server) = ZooKeeperServer::start("a thousand leaders").await else {
        return;
    };
    // A session lasts as long as the lease.
    let url = format!("{}?ttl=2s", server.url("elections"));
    a_thousand_observers_see_every_leader_that_lasts(Place {
        url: &url,
        ttl: 2_000,
        exact: false,
    })
    .await;
}

/// Where the election is.
#[derive(Clone, Copy)]
struct Place<'a> {
    url: &'a str,
    /// The lease of a leader, in milliseconds.
    ttl: u64,
    /// Whether observers see the token of the leader; on other stores, that of its position in the queue.
    exact: bool,
}

async fn a_thousand_observers_see_every_leader_that_lasts(place: Place<'_>) {
    let changes = env::var("LOCK_CHANGES").map_or(10, |it| it.parse().expect("a number"));
    let mut managers = Vec::new();
    let mut observers = JoinSet::new();
    for number in 0..OBSERVERS {
        if number < MANAGERS {
            managers.push(connect(place.url).await);
        }
        observers.spawn(seen(observe(&managers[number % MANAGERS])));
    }
    let led = lead(place, changes).await;
    for locks in &managers {
        within(TIME_LIMIT, locks.shutdown()).await;
    }
    let mut fewest = usize::MAX;
    while let Some(seen) = within(TIME_LIMIT, observers.join_next()).await {
        let seen = seen.expect("no panic");
        led.check(&seen, place.exact);
        fewest = fewest.min(seen.len());
    }
    println!(
        "{OBSERVERS} observers, {changes} leaders: {} lasted, {} were killed, {} stopped; each observer saw {fewest} or \
         more",
        led.lasted.len(),
        led.killed,
        led.stopped
    );
}

/// The process of a leader, and what it publishes.
type Name = (u32, Box<str>);

/// All leaders that an observer sees, in its order, each with its token.
async fn seen(mut leaders: Leaders) -> Vec<(Name, u64)> {
    let mut seen = Vec::new();
    while let Some(leader) = leaders.next().await {
        let process = leader.process.expect("a process of this machine");
        seen.push(((process, leader.data), leader.fencing_token.get()));
    }
    seen
}

/// Those who have led, as far as they have heard of it before their lease ended.
#[derive(Default)]
struct Led {
    fences: HashMap<Name, u64>,
    /// The largest fence.
    latest: u64,
    /// Those that everybody has to see.
    lasted: Vec<Name>,
    killed: usize,
    stopped: usize,
}

impl Led {
    fn check(&self, seen: &[(Name, u64)], exact: bool) {
        assert!(seen.is_sorted_by(|(_, a), (_, b)| a < b), "{seen:?}");
        let known = seen.iter().filter_map(|(name, shown)| {
            let fence = *self.fences.get(name)?;
            assert!(
                *shown <= fence && (*shown == fence || !exact),
                "{name:?}: {shown} of {fence}"
            );
            Some(fence)
        });
        let fences: Vec<_> = known.collect();
        assert!(fences.is_sorted_by(|a, b| a < b), "{fences:?}: {seen:?}");
        let names: HashSet<_> = seen.iter().map(|(name, _)| name).collect();
        let missed: Vec<_> = self
            .lasted
            .iter()
            .filter(|it| !names.contains(it))
            .collect();
        assert!(missed.is_empty(), "missed {missed:?}: {seen:?}");
    }
}

#[derive(Clone, Copy)]
enum End {
    Resigns,
    Stops,
    IsKilled,
}

/// Whether each of ten leaders lasts, and how it ends.
fn ten() -> impl Iterator<Item = (bool, End)> {
    let mut lasting = [false; 10];
    lasting[..2].fill(true);
    fastrand::shuffle(&mut lasting);
    let mut ends = [End::Resigns; 10];
    ends[0] = [End::Stops, End::IsKilled][fastrand::usize(..2)];
    fastrand::shuffle(&mut ends);
    lasting.into_iter().zip(ends)
}

/// Lets so many leaders follow each other.
async fn lead(place: Place<'_>, changes: usize) -> Led {
    let mut candidates = Vec::new();
    for _ in 0..CANDIDATES {
        candidates.push(candidate(place).await);
    }
    let mut led = Led::default();
    let mut fates = std::iter::repeat_with(ten).flatten();
    while led.fences.len() < changes {
        let (leader, data, fence) = next(&mut candidates).await;
        candidates.iter().for_each(Worker::resume);
        let name = (candidates[leader].pid(), data);
        led.fences.insert(name.clone(), fence);
        if fence <= led.latest {
            // Its lease ended before its line was read.
            continue;
        }
        led.latest = fence;
        let (lasts, end) = fates.next().expect("there is no end of them");
        let began = Instant::now();
        let time = if lasts {
            1.0 + fastrand::f64() / 4.0
        } else {
            fastrand::f64() / 8.0
        };
        sleep(LASTS.mul_f64(time)).await;
        if began.elapsed() >= LASTS {
            led.lasted.push(name);
        }
        match end {
            End::Resigns => candidates[leader].send(&format!("resign {fence}")).await,
            End::Stops => {
                led.stopped += 1;
                candidates[leader].pause();
            }
            End::IsKilled => {
                led.killed += 1;
                candidates[leader].kill().await;
                candidates[leader] = candidate(place).await;
            }
        }
    }
    led
}

async fn candidate(place: Place<'_>) -> Worker {
    let program = env!("CARGO_BIN_EXE_worker");
    Worker::candidate(program, place.url, [ELECTION, "it"], place.ttl).await
}

/// The number of the next leader, what it publishes, and its fence.
async fn next(candidates: &mut [Worker]) -> (usize, Box<str>, u64) {
    loop {
        let lines = candidates.iter_mut().map(|it| Box::pin(it.line()));
        let mut lines: Vec<Pin<Box<_>>> = lines.collect();
        let first = poll_fn(|cx| {
            for (number, line) in lines.iter_mut().enumerate() {
                if let Poll::Ready(line) = line.as_mut().poll(cx) {
                    return Poll::Ready((number, line));
                }
            }
            Poll::Pending
        });
        let (number, line) = within(TIME_LIMIT, first).await;
        if let Some((data, fence)) = line.split_once(" granted ") {
            return (number, data.into(), fence.parse().expect("a fence"));
        }
    }
}
