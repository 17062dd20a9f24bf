//! A thousand observers of leaders that resign, are killed or stop: each sees every leader that lasts, in order.
//!
//! `LOCK_CHANGES` is the number of leaders.
//!
//! Section: guarantees.md#elections

use std::collections::BTreeSet;
use std::env;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use lock_runtime::Leaders;
use tests::{RedisServer, TIME_LIMIT, Worker, connect, within};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::{ELECTION, observe};

const OBSERVERS: usize = 1_000;
const MANAGERS: usize = 20;
const CANDIDATES: usize = 4;
/// The lease of a leader, in milliseconds.
const TTL: u64 = 1_500;
/// How long a leader leads that everybody has to see: more than a second on a busy machine, too.
const LASTS: Duration = Duration::from_millis(1_300);

#[tokio::test]
async fn a_thousand_observers_see_every_leader_that_lasts() {
    let changes = env::var("LOCK_CHANGES").map_or(6, |it| it.parse().expect("a number"));
    let server = RedisServer::start().await;
    let mut managers = Vec::new();
    let mut observers = JoinSet::new();
    for number in 0..OBSERVERS {
        if number < MANAGERS {
            managers.push(connect(server.url()).await);
        }
        observers.spawn(fences(observe(&managers[number % MANAGERS])));
    }
    let seen = lead(&server, changes).await;
    for locks in &managers {
        within(TIME_LIMIT, locks.shutdown()).await;
    }
    while let Some(observed) = within(TIME_LIMIT, observers.join_next()).await {
        seen.check(&observed.expect("no panic"));
    }
    println!(
        "{OBSERVERS} observers, {changes} leaders, of whom {} lasted",
        seen.lasted.len()
    );
}

/// The fences of all leaders that an observer sees, in its order.
async fn fences(mut leaders: Leaders) -> Vec<u64> {
    let mut seen = Vec::new();
    while let Some(leader) = leaders.next().await {
        seen.push(leader.fencing_token.get());
    }
    seen
}

/// The fences of the leaders.
#[derive(Default)]
struct Led {
    all: BTreeSet<u64>,
    /// Those that everybody has to see.
    lasted: BTreeSet<u64>,
}

impl Led {
    fn check(&self, observed: &[u64]) {
        assert!(observed.is_sorted_by(|a, b| a < b), "{observed:?}");
        let observed: BTreeSet<_> = observed.iter().copied().collect();
        let missed: Vec<_> = self.lasted.difference(&observed).collect();
        assert!(missed.is_empty(), "missed {missed:?}: {observed:?}");
        let odd: Vec<_> = observed.difference(&self.all).collect();
        assert!(odd.is_empty(), "never led: {odd:?}");
    }
}

/// Lets so many leaders follow each other.
async fn lead(server: &RedisServer, changes: usize) -> Led {
    let mut candidates = Vec::new();
    for _ in 0..CANDIDATES {
        candidates.push(candidate(server).await);
    }
    let mut led = Led::default();
    for change in 0..changes {
        let (leader, fence) = next(&mut candidates).await;
        candidates.iter().for_each(Worker::resume);
        let is_latest = led.all.last().is_none_or(|last| *last < fence);
        assert!(led.all.insert(fence), "{fence} led twice");
        if !is_latest {
            // Its lease ended before its line was read.
            continue;
        }
        let began = Instant::now();
        // Every other one, and the last.
        if change % 2 == 0 || change + 1 == changes {
            sleep(LASTS).await;
        } else {
            sleep(LASTS.mul_f64(fastrand::f64() / 4.0)).await;
        }
        if began.elapsed() >= LASTS {
            led.lasted.insert(fence);
        }
        match fastrand::u8(..4) {
            0 => {
                candidates[leader].kill().await;
                candidates[leader] = candidate(server).await;
            }
            1 => candidates[leader].pause(),
            _ => candidates[leader].send(&format!("resign {fence}")).await,
        }
    }
    led
}

async fn candidate(server: &RedisServer) -> Worker {
    let program = env!("CARGO_BIN_EXE_worker");
    Worker::candidate(program, &server.url(), [ELECTION, "it"], TTL).await
}

/// The number of the next leader, and its fence.
async fn next(candidates: &mut [Worker]) -> (usize, u64) {
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
        if let Some((_, fence)) = line.split_once(" granted ") {
            return (number, fence.parse().expect("a fence"));
        }
    }
}
