//! Three servers: whichever fails, there are no two holders, and the lock goes on.
//!
//! Section: zookeeper.md#what-failures-do

use std::{
    env,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use lock_runtime::{LockConfig, LockError, LockManager};
use tests::{
    LONG, Pulse, TIME_LIMIT, ZooKeeperEnsemble, connect, poll_once, queued, release, take_turn,
    within,
};

use tokio::{
    sync::{Mutex, MutexGuard},
    task::JoinSet,
};

use crate::manager;

const SESSION: Duration = Duration::from_secs(2);

/// Three servers at a time are enough for a small machine.
pub(crate) async fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::const_new(());
    ALONE.lock().await
}

async fn ensemble() -> Option<ZooKeeperEnsemble> {
    ZooKeeperEnsemble::start("tests/zookeeper", 100).await
}

/// A manager that waits for an election.
async fn patient(url: &str) -> LockManager {
    let config = LockConfig::new(url).unwrap().ttl(LONG);
    connect(config.unavailable_wait_forever()).await
}

fn rounds() -> u32 {
    rounds_or(2)
}

/// How often a fault is repeated; `make torture-zookeeper` says more.
pub(crate) fn rounds_or(usual: u32) -> u32 {
    let rounds = env::var("LOCK_ROUNDS").ok();
    rounds.map_or(usual, |rounds| rounds.parse().unwrap())
}

/// Runs a body whose server fails; another one gets the lock after the body's last poll, with a larger fence.
async fn fails_over(ours: &LockManager, theirs: &LockManager, fault: impl AsyncFnOnce()) {
    let guard = ours.lock("key").wait(TIME_LIMIT).acquire().await.unwrap();
    let fence = guard.fencing_token();
    let next = queued(theirs, theirs.lock("key").wait_forever()).await;
    let next = tokio::spawn(async move { (next.await.unwrap(), Instant::now()) });
    // Right after a heartbeat that was confirmed.
    let mut before = guard.remaining();
    while guard.remaining() <= before {
        before = guard.remaining();
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let pulse = Pulse::default();
    let body = tokio::spawn({
        let pulse = pulse.clone();
        async move { guard.hold(pulse.beat(&guard)).await }
    });
    fault().await;
    let outcome = within(TIME_LIMIT, body).await.unwrap();
    assert!(matches!(outcome, Err(LockError::Lost { .. })));
    let (next, at) = within(TIME_LIMIT, next).await.unwrap();
    let polls = pulse.polls();
    assert_eq!(polls.late, 0, "the body ran on after its deadline");
    assert!(polls.last < Some(at), "two ran at once");
    assert!(next.fencing_token() > fence);
    release(next).await;
}

#[tokio::test]
async fn a_lock_outlives_the_leader() {
    let _alone = alone().await;
    let Some(mut ensemble) = ensemble().await else {
        return;
    };
    let (ours, theirs) = (
        patient(&ensemble.url()).await,
        patient(&ensemble.url()).await,
    );
    let mut fence = take_turn(&ours, "key").await;
    for _ in 0..rounds() {
        let guard = ours.lock("key").wait(TIME_LIMIT).acquire().await.unwrap();
        let mut waiter = queued(&theirs, theirs.lock("key").wait_forever()).await;
        let leader = ensemble.leader().await;
        ensemble.server(leader).kill().await;
        ensemble.leader().await;
        // They are served again, and the lock is where it was.
        for locks in [&ours, &theirs] {
            let request = locks.lock("other").wait(TIME_LIMIT);
            release(within(TIME_LIMIT, request.acquire()).await.unwrap()).await;
        }
        assert!(guard.is_held() && poll_once(&mut waiter).await.is_pending());
        assert!(guard.fencing_token().get() > fence);
        fence = guard.fencing_token().get();
        release(guard).await;
        let waiter = within(TIME_LIMIT, waiter).await.unwrap();
        assert!(waiter.fencing_token().get() > fence);
        fence = waiter.fencing_token().get();
        release(waiter).await;
        ensemble.server(leader).restart().await;
    }
}

/// In the first epoch of an ensemble, the answer to a downgrade begins with the number of a change that looks like the head of
/// another answer.
#[tokio::test]
async fn a_writer_goes_on_as_a_reader() {
    let _alone = alone().await;
    let Some(ensemble) = ensemble().await else {
        return;
    };
    let locks = patient(&ensemble.url()).await;
    for _ in 0..10 {
        let writer = locks.lock("key").write().wait(TIME_LIMIT).acquire();
        let writer = within(TIME_LIMIT, writer).await.unwrap();
        let reader = within(TIME_LIMIT, writer.downgrade()).await.unwrap();
        release(reader).await;
    }
}

#[tokio::test]
async fn a_follower_that_dies_right_after_a_heartbeat_makes_no_two_holders() {
    let _alone = alone().await;
    let Some(mut ensemble) = ensemble().await else {
        return;
    };
    let theirs = manager(&ensemble.url(), LONG / 4).await;
    for _ in 0..rounds() {
        let follower = ensemble.follower().await;
        let url = ensemble.server(follower).url("");
        let ours = manager(&url, SESSION).await;
        fails_over(&ours, &theirs, async || {
            ensemble.server(follower).kill().await;
        })
        .await;
        ensemble.server(follower).restart().await;
    }
}

#[tokio::test]
async fn a_follower_that_is_cut_off_from_the_leader_makes_no_two_holders() {
    let _alone = alone().await;
    let Some(mut ensemble) = ensemble().await else {
        return;
    };
    let leader = ensemble.leader().await;
    let theirs = manager(&ensemble.server(leader).url(""), LONG / 4).await;
    for _ in 0..rounds() {
        let follower = ensemble.follower().await;
        let url = ensemble.server(follower).url("");
        let ours = manager(&url, SESSION).await;
        fails_over(&ours, &theirs, async || ensemble.cut_off(follower)).await;
        ensemble.join(follower);
    }
}

/// One turn with a lock: its fence, and when its body was polled first and last.
#[derive(Clone, Copy)]
struct Turn {
    fence: u64,
    first: Instant,
    last: Instant,
}

/// Takes the lock again and again until `stop`; the turns that it had.
async fn take_turns(locks: LockManager, key: &'static str, stop: Arc<AtomicBool>) -> Vec<Turn> {
    let mut turns = Vec::new();
    while !stop.load(Ordering::SeqCst) {
        let Ok(guard) = locks.lock(key).wait(TIME_LIMIT).acquire().await else {
            continue;
        };
        let fence = guard.fencing_token().get();
        let mut polled: Option<Turn> = None;
        let body = async {
            for _ in 0..3 {
                let last = Instant::now();
                let first = polled.map_or(last, |turn| turn.first);
                polled = Some(Turn { fence, first, last });
                tokio::time::sleep(Duration::from_micros(300)).await;
            }
        };
        // The lock may be lost; what the body did until then counts.
        let _ = guard.hold(body).await;
        turns.extend(polled);
    }
    turns
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn turns_never_overlap_whatever_fails() {
    const KEYS: [&str; 2] = ["a", "b"];
    let _alone = alone().await;
    let Some(mut ensemble) = ensemble().await else {
        return;
    };
    let stop = Arc::new(AtomicBool::new(false));
    let mut tasks = KEYS.map(|_| JoinSet::new());
    for _ in 0..3 {
        let locks = manager(&ensemble.url(), SESSION).await;
        for (key, tasks) in KEYS.into_iter().zip(&mut tasks) {
            for _ in 0..4 {
                tasks.spawn(take_turns(locks.clone(), key, Arc::clone(&stop)));
            }
        }
    }
    for round in 0..rounds() {
        let (leader, follower) = (ensemble.leader().await, ensemble.follower().await);
        match round % 3 {
            0 => ensemble.server(follower).kill().await,
            1 => ensemble.cut_off(follower),
            _ => ensemble.server(leader).kill().await,
        }
        tokio::time::sleep(2 * SESSION).await;
        match round % 3 {
            0 => ensemble.server(follower).restart().await,
            1 => ensemble.join(follower),
            _ => ensemble.server(leader).restart().await,
        }
    }
    stop.store(true, Ordering::SeqCst);
    for tasks in tasks {
        let mut turns = within(10 * TIME_LIMIT, tasks.join_all()).await.concat();
        turns.sort_unstable_by_key(|turn| turn.fence);
        println!("{} turns", turns.len());
        assert!(turns.len() > 100, "{} turns", turns.len());
        for pair in turns.windows(2) {
            assert!(pair[0].fence < pair[1].fence, "two have one fence");
            assert!(pair[0].last < pair[1].first, "two ran at once");
        }
    }
}
