//! Bugs that other lock libraries shipped, where no other test guards against them already.

use std::time::{Duration, Instant};

use lock_runtime::{LockError, LockManager, distributed_lock};
use redis::from_redis_value;
use tests::{LONG, Proxy, RedisServer, begin, connect, granted, queue, take, unique, within};
use tokio::{sync::Barrier, task::JoinSet, time::sleep};

const SOON: Duration = Duration::from_secs(20);

/// Sooner than a grant that was missed would be found by asking twice.
const FOUND: Duration = Duration::from_secs(2);

// Section: guarantees.md#one-holder-at-a-time
#[tokio::test]
async fn an_old_guard_neither_renews_nor_releases_a_later_lock_of_its_own_process() {
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let key = unique("token");
    let owner = RedisServer::owner_key(&key);
    let ttl = Duration::from_secs(1);
    let old = take(&locks, &key, ttl).await;
    let token = server.owner(&key).await;
    server.cmd(&["DEL", &owner]).await;
    let new = take(&locks, &key, LONG).await;
    assert_ne!(server.owner(&key).await, token, "one token for two");
    // The renewals of the old one fall due.
    within(SOON, old.lost()).await;
    assert!(new.is_held());
    let released = within(SOON, old.release_confirmed()).await;
    assert!(!released.expect("an answer"), "it was not its lock");
    let left = server.cmd(&["PTTL", &owner]).await;
    let left: i64 = from_redis_value(left).expect("a number");
    assert!(left > 30_000, "its ttl was set to {left} ms");
}

#[tokio::test]
async fn a_release_before_the_newcomer_listens_is_not_missed() {
    const ROUNDS: u32 = 200;
    let server = RedisServer::start().await;
    let (holder, newcomer) = (connect(server.url()).await, connect(server.url()).await);
    let key = unique("race");
    let start = Instant::now();
    for round in 0..ROUNDS {
        let guard = take(&holder, &key, LONG).await;
        let mut acquire = Box::pin(newcomer.lock(&key).ttl(LONG).wait(SOON).acquire());
        begin(&mut acquire.as_mut()).await;
        let release = Instant::now() + Duration::from_micros(u64::from(round % 50) * 10);
        while Instant::now() < release {
            std::thread::yield_now();
        }
        guard.release();
        let next = within(FOUND, acquire).await.expect("it is free");
        next.release();
    }
    // Each that was missed would be found after a second.
    assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
}

#[tokio::test]
async fn a_ttl_is_sent_to_the_server_in_milliseconds() {
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    for seconds in [2, 60, 24 * 60 * 60] {
        let key = unique("unit");
        let ttl = Duration::from_secs(seconds);
        let guard = take(&locks, &key, ttl).await;
        let left = server.cmd(&["PTTL", &RedisServer::owner_key(&key)]).await;
        let left = Duration::from_millis(from_redis_value(left).expect("a ttl"));
        assert!(left <= ttl && left > ttl / 2, "{left:?} of {ttl:?}");
        assert!(guard.remaining() < left, "longer than the server's");
    }
}

#[tokio::test]
async fn any_number_of_locks_and_waiters_share_one_connection_and_one_subscription() {
    const WAITERS: usize = 500;
    let server = RedisServer::start().await;
    let (locks, others) = (connect(server.url()).await, connect(server.url()).await);
    let mut inspector = server.connection().await;
    let mut connections = async || {
        let info = redis::cmd("INFO");
        let info: String = info.query_async(&mut inspector).await.expect("a text");
        let count = "total_connections_received:";
        let count = info.lines().find_map(|line| line.strip_prefix(count));
        count.expect("a count").to_owned()
    };
    let before = connections().await;
    let mut held = Vec::new();
    let mut waiters = JoinSet::new();
    for number in 0..WAITERS {
        let key = format!("many-{number}");
        held.push(take(&locks, &key, LONG).await);
        waiters.spawn(others.lock(&key).ttl(LONG).wait(SOON).acquire());
    }
    drop(held);
    for guard in within(SOON, waiters.join_all()).await {
        guard.expect("handed over").release();
    }
    assert_eq!(connections().await, before, "new connections were made");
    assert_eq!(server.listeners().await, 2);
}

// Section: guarantees.md#no-poll-of-the-body-starts-after-its-deadline
#[tokio::test]
async fn a_renewal_that_succeeds_too_late_revives_nothing() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr());
    let locks = connect(proxy.url()).await;
    // One call may take as long, so that its connection outlives the lease.
    let ttl = Duration::from_millis(100);
    let mut late = 0;
    for _ in 0..20 {
        let key = unique("late");
        let guard = take(&locks, &key, ttl).await;
        let before = server.subscribers().await;
        proxy.replies().hold();
        within(SOON, guard.lost()).await;
        proxy.replies().pass();
        // Is answered after everything before.
        drop(take(&locks, &unique("after"), LONG).await);
        late += u32::from(server.subscribers().await == before);
        assert!(!guard.is_held(), "it knows of the loss");
        assert!(guard.remaining().is_zero());
    }
    assert!(late > 0, "every connection broke, and the answer with it");
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Failure(u32);

impl From<LockError> for Failure {
    fn from(error: LockError) -> Self {
        panic!("it hides what the body returned: {error}");
    }
}

type Outcome = Result<u32, Failure>;

#[distributed_lock(key = "detached", ttl = "2s", manager = locks)]
async fn detached(locks: &LockManager, gate: &Barrier, outcome: Outcome) -> Outcome {
    gate.wait().await;
    gate.wait().await;
    outcome
}

#[distributed_lock(key = "confirmed", ttl = "2s", manager = locks, release = "confirmed")]
async fn confirmed(locks: &LockManager, gate: &Barrier, outcome: Outcome) -> Outcome {
    gate.wait().await;
    gate.wait().await;
    outcome
}

#[tokio::test]
async fn a_release_that_fails_does_not_hide_what_the_body_returned() {
    let mut server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let gate = Barrier::new(2);
    for outcome in [Ok(7), Err(Failure(8))] {
        let run = async || {
            let request = locks.lock("run").ttl(Duration::from_secs(2)).wait(SOON);
            let body = async |_: &_| {
                gate.wait().await;
                gate.wait().await;
                outcome
            };
            request.run(body).await.expect("locked")
        };
        for kind in 0..3 {
            let call = async {
                match kind {
                    0 => detached(&locks, &gate, outcome).await,
                    1 => confirmed(&locks, &gate, outcome).await,
                    _ => run().await,
                }
            };
            let kill = async {
                gate.wait().await;
                server.kill().await;
                gate.wait().await;
            };
            let both = async { tokio::join!(call, kill) };
            let (returned, ()) = within(SOON, both).await;
            assert_eq!(returned, outcome);
            server.restart().await;
            drop(take(&locks, "back", LONG).await);
        }
    }
}

#[tokio::test]
async fn a_release_is_not_answered_by_everybody_who_waits() {
    const PROCESSES: u64 = 10;
    const EACH: u64 = 5;
    let server = RedisServer::start().await;
    let holder = connect(server.url()).await;
    let key = unique("herd");
    let guard = take(&holder, &key, LONG).await;
    let mut waiters = JoinSet::new();
    for _ in 0..PROCESSES {
        let locks = connect(server.url()).await;
        for _ in 0..EACH {
            let acquire = locks.lock(&key).ttl(LONG).wait_forever().acquire();
            waiters.spawn(async move { acquire.await.expect("a turn").release() });
        }
    }
    let hand_overs = PROCESSES * EACH;
    server.queued(&key, hand_overs).await;
    let (before, start) = (server.calls("evalsha").await, Instant::now());
    guard.release();
    within(SOON, waiters.join_all()).await;
    let calls = server.calls("evalsha").await - before;
    // One for each release, and a question a second of each process.
    let questions = (start.elapsed().as_secs() + 1) * PROCESSES;
    let most = hand_overs + 1 + questions;
    assert!(calls <= most, "{calls} calls for {hand_overs} hand-overs");
}

// Section: guarantees.md#first-come-first-served
#[tokio::test]
async fn a_waiter_that_lives_is_never_evicted() {
    let server = RedisServer::start().await;
    let holder = connect(server.url()).await;
    let (first, second) = (connect(server.url()).await, connect(server.url()).await);
    let key = unique("evicted");
    let guard = take(&holder, &key, LONG).await;
    let first = queue(&server, &first, &key, LONG, 1).await;
    let second = queue(&server, &second, &key, LONG, 2).await;
    let waiters = async || {
        let queue = RedisServer::queue_key(&key);
        server
            .cmd(&["ZRANGE", &queue, "0", "-1", "WITHSCORES"])
            .await
    };
    let before = waiters().await;
    // Longer than the silence for which the dead are skipped.
    sleep(Duration::from_millis(4_500)).await;
    assert_eq!(waiters().await, before, "the queue has changed");
    guard.release();
    let first = granted(FOUND, first).await;
    assert!(!second.is_finished());
    first.release();
    granted(FOUND, second).await.release();
}

#[distributed_lock(key = "shared:{id}", manager = locks)]
async fn one(locks: &LockManager, id: u32, gate: &Barrier) -> Result<(), LockError> {
    gate.wait().await;
    gate.wait().await;
    Ok(())
}

#[distributed_lock(key = "shared:{id}", manager = locks, wait = "0s")]
async fn two(locks: &LockManager, id: u32) -> Result<(), LockError> {
    Ok(())
}

#[tokio::test]
async fn functions_of_other_names_may_share_a_lock() {
    let locks = connect("memory:").await;
    let gate = Barrier::new(2);
    let meanwhile = async {
        gate.wait().await;
        two(&locks, 2).await.expect("another lock");
        let error = two(&locks, 1).await.expect_err("the same lock");
        assert!(matches!(error, LockError::Contended { .. }), "{error}");
        gate.wait().await;
    };
    let (locked, ()) = tokio::join!(one(&locks, 1, &gate), meanwhile);
    locked.expect("locked");
}
