//! A leader that is cut off together with its clients serves them on until it notices; nobody gets their locks meanwhile.
//!
//! Section: zookeeper.md#what-failures-do

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

use lock_runtime::{LockConfig, LockError, LockManager};
use tests::{LONG, Pulse, TIME_LIMIT, ZooKeeperEnsemble, connect, eventually, within};
use tokio::task::JoinSet;

use crate::ensemble::{alone, rounds_or};

/// Each has a manager, and so a session, of its own.
const LOCKS: usize = 6;

/// The times that decide who notices first.
#[derive(Clone, Copy, Debug)]
struct Times {
    tick: Duration,
    sync_limit: u32,
    session: Duration,
}

impl Times {
    const fn new(tick: u64, sync_limit: u32, session: u64) -> Self {
        Self {
            tick: Duration::from_millis(tick),
            sync_limit,
            session: Duration::from_millis(session),
        }
    }

    async fn ensemble(self) -> Option<ZooKeeperEnsemble> {
        let tick = u32::try_from(self.tick.as_millis()).unwrap();
        ZooKeeperEnsemble::start_strict("tests/zookeeper", tick, self.sync_limit).await
    }
}

async fn patient(url: &str, session: Duration) -> LockManager {
    let config = LockConfig::new(url).unwrap().connect_timeout(TIME_LIMIT);
    connect(config.ttl(session).unavailable_wait_forever()).await
}

/// How long before the next grant the last poll of a body was, or how long after it.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
struct Gap {
    milliseconds: f64,
    is_overlap: bool,
}

impl Gap {
    fn between(last: Instant, next: Instant) -> Self {
        let is_overlap = last >= next;
        let gap = if is_overlap { last - next } else { next - last };
        Self {
            milliseconds: gap.as_secs_f64() * 1e3,
            is_overlap,
        }
    }
}

/// Holds locks at the leader, cuts both off, and lets clients of the others have the locks.
async fn trial(ensemble: &ZooKeeperEnsemble, times: Times) -> Vec<Gap> {
    let leader = ensemble.leader().await;
    let theirs = patient(&ensemble.url_without(leader), LONG / 4).await;
    let mut locks = JoinSet::new();
    for number in 0..LOCKS {
        let ours = patient(&ensemble.url_of(leader), times.session).await;
        let key = format!("key-{number}");
        let guard = within(LONG, ours.lock(&key).wait_forever().acquire()).await;
        let guard = guard.unwrap();
        let fence = guard.fencing_token();
        let next = theirs.lock(&key).wait_forever().acquire();
        let next = tokio::spawn(async move { (next.await.unwrap(), Instant::now()) });
        let waits = async || theirs.status(&key).await.is_ok_and(|it| it.waiting == 1);
        eventually(LONG, waits).await;
        let pulse = Pulse::default();
        let body = tokio::spawn({
            let pulse = pulse.clone();
            async move { guard.hold(pulse.beat(&guard)).await }
        });
        within(TIME_LIMIT, pulse.reaches(1)).await;
        locks.spawn(async move {
            let _manager = ours;
            let outcome = within(2 * LONG, body).await.unwrap();
            assert!(matches!(outcome, Err(LockError::Lost { .. })));
            let (next, at) = within(2 * LONG, next).await.unwrap();
            assert!(next.fencing_token() > fence);
            Gap::between(pulse.polls().last.unwrap(), at)
        });
    }
    // At any time of a tick.
    tokio::time::sleep(times.tick.mul_f64(fastrand::f64())).await;
    ensemble.cut_off(leader);
    let gaps = locks.join_all().await;
    ensemble.join(leader);
    ensemble.serves(leader).await;
    gaps
}

/// Runs trials until there were enough, on an ensemble of its own.
async fn trials(times: Times, left: &AtomicU32) -> Vec<Vec<Gap>> {
    let ensemble = times.ensemble().await;
    let mut trials = Vec::new();
    while let Some(ensemble) = &ensemble
        && left
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |it| it.checked_sub(1))
            .is_ok()
    {
        trials.push(trial(ensemble, times).await);
    }
    trials
}

/// Says how close it was, and fails if two held a lock at once.
fn judge(times: Times, trials: &[Vec<Gap>]) {
    let overlaps = |it: &&Vec<Gap>| it.iter().any(|gap| gap.is_overlap);
    let overlapping: Vec<_> = trials.iter().filter(overlaps).collect();
    let gaps = trials.iter().flatten().filter(|it| !it.is_overlap);
    let mut gaps: Vec<_> = gaps.map(|it| it.milliseconds).collect();
    gaps.sort_by(f64::total_cmp);
    println!(
        "{times:?}: {} trials, {} with an overlap; the other bodies ended {:.0?} ms at the least and {:.0?} ms in the \
         middle before the next grant",
        trials.len(),
        overlapping.len(),
        gaps.first(),
        gaps.get(gaps.len() / 2),
    );
    assert!(overlapping.is_empty(), "two ran at once: {overlapping:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn its_clients_and_those_of_the_next_leader_never_hold_a_lock_at_once() {
    let _alone = alone().await;
    let times = Times::new(1_000, 2, 2_000);
    judge(times, &trials(times, &AtomicU32::new(1)).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes ten minutes: `make torture-zookeeper`"]
async fn nor_in_thirty_trials_with_short_times_and_with_those_of_the_documents() {
    let _alone = alone().await;
    for times in [Times::new(2_000, 2, 4_000), Times::new(2_000, 5, 10_000)] {
        let left = AtomicU32::new(rounds_or(30));
        let [a, b, c] = [(); 3].map(|()| trials(times, &left));
        let (a, b, c) = tokio::join!(a, b, c);
        judge(times, &[a, b, c].concat());
    }
}
