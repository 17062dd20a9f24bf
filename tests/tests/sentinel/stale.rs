//! Sentinels that contradict each other: what one of them knows better holds, however slow it is.
//!
//! Section: guarantees.md#when-a-replica-takes-over

use std::time::Duration;

use lock_runtime::LockManager;
use tests::{
    FakeSentinel, LONG, RedisServer, SentinelFleet, TIME_LIMIT, connect, eventually, release, take,
    within,
};
use tokio::{task::JoinSet, time::sleep};

use crate::{FAILED_OVER, config, left};

const TRIALS: usize = 30;
/// Longer than others are waited for, once one has answered; it takes three answers to be asked again.
const SLOW: Duration = Duration::from_millis(150);

/// The URL of some sentinels.
fn url(sentinels: &[FakeSentinel]) -> String {
    let hosts: Vec<_> = sentinels.iter().map(|it| it.addr().to_string()).collect();
    format!("redis+sentinel://{}/locks", hosts.join(","))
}

/// Whether it is let in, tried for so long.
async fn is_let_in(locks: &LockManager, key: &str, long: Duration) -> bool {
    let start = std::time::Instant::now();
    while start.elapsed() < long {
        let tried = locks.lock(key).wait(Duration::ZERO).acquire();
        if within(TIME_LIMIT, tried).await.is_ok() {
            return true;
        }
        sleep(Duration::from_millis(50)).await;
    }
    false
}

#[tokio::test]
async fn what_one_has_said_holds_though_it_is_slow_and_the_others_have_not_heard_of_it() {
    // Nobody tells the old one: it is a master for ever, and everybody reaches it.
    let (old, new) = tokio::join!(RedisServer::start(), RedisServer::start());
    let sentinels: Vec<_> = (0..3).map(|_| FakeSentinel::start(4, old.addr())).collect();
    let others = connect(new.url()).await;
    let mut trials = Vec::new();
    for trial in 0..TRIALS {
        let key = trial.to_string();
        let locks = connect(config(url(&sentinels))).await;
        release(take(&locks, &key, LONG).await).await;
        trials.push((locks, take(&others, &key, LONG).await, key));
    }
    assert_eq!(old.listeners().await, TRIALS);

    sentinels[0].announce(5, new.addr(), SLOW);
    // All have heard of it once they have connected to the new one, for a moment or for good.
    let connected = async || new.listeners().await > TRIALS;
    let connected = tokio::time::timeout(TIME_LIMIT / 4, eventually(TIME_LIMIT, connected)).await;
    let mut tries = JoinSet::new();
    for (locks, guard, key) in trials {
        tries.spawn(async move {
            let two = is_let_in(&locks, &key, Duration::from_secs(2)).await;
            assert!(guard.is_held());
            (locks, two)
        });
    }
    let ended = tries.join_all().await;
    let two = ended.iter().filter(|(_, two)| *two).count();
    let stayed = old.listeners().await;
    assert_eq!((two, stayed), (0, 0), "of {TRIALS}: two holders, stayed");
    assert!(connected.is_ok(), "not all of them went to the new master");
}

#[tokio::test]
async fn a_service_that_is_watched_anew_at_another_address_is_followed_there() {
    let fleet = SentinelFleet::start().await;
    fleet.failover().await;
    fleet.settled().await;
    let locks = connect(config(fleet.url())).await;
    let first = &fleet.nodes()[fleet.master().await];
    let other = RedisServer::start().await;
    let port = other.port().to_string();
    // One that still watches the old service would tell the others of it.
    for sentinel in fleet.sentinels() {
        sentinel.cmd(&["SENTINEL", "REMOVE", "locks"]).await;
    }
    for sentinel in fleet.sentinels() {
        let monitor = ["SENTINEL", "MONITOR", "locks", "127.0.0.1", &port, "2"];
        sentinel.cmd(&monitor).await;
    }
    let there = async || other.listeners().await == 1;
    eventually(FAILED_OVER, there).await;
    left(first).await;
    let guard = take(&locks, "key", LONG).await;
    assert_eq!(other.keys("lock:{*").await.len(), 1);
    release(guard).await;
}
