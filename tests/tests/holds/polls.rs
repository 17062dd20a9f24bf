//! The end of a lease beside a poll that runs: the next holder waits for its return, and the margin is kept for those
//! who look for themselves.
//!
//! Section: guarantees.md#no-poll-of-the-body-starts-after-its-deadline

use std::{
    future::{pending, poll_fn},
    task::Poll,
    thread,
    time::{Duration, Instant},
};

use lock_runtime::{LockError, LockGuard, LockManager, LockRequest};
use tests::{LONG, RedisServer, Store, TIME_LIMIT, aside, connect, on_every_store, unique, within};
use tokio::task::JoinSet;

on_every_store! {
    the_next_holder_enters_after_the_poll_that_runs,
    a_guard_without_a_body_keeps_its_lock_for_the_margin,
    a_body_that_is_not_stopped_keeps_its_lock_for_the_margin,
    a_guard_that_looks_beside_a_body_keeps_its_lock_for_the_margin,
}

/// How long a lease lasts, and how a request makes it end then.
const LEASE: Duration = Duration::from_secs(1);

/// The margin of a lease of that length.
const MARGIN: Duration = Duration::from_millis(50);

/// How long each poll of a body takes: less than the margin.
const POLL: Duration = Duration::from_millis(35);

/// The ways in which a lease ends by itself.
#[derive(Debug, Clone, Copy)]
enum Ends {
    WithItsTtl,
    AtMaxHold,
}

const WAYS: [Ends; 2] = [Ends::WithItsTtl, Ends::AtMaxHold];

impl Ends {
    fn request(self, locks: &LockManager, key: &str) -> LockRequest {
        let request = locks.lock(key).wait(TIME_LIMIT);
        match self {
            Self::WithItsTtl => request.ttl(LEASE).renew(false),
            Self::AtMaxHold => request.ttl(LONG).max_hold(LEASE),
        }
    }
}

/// The local deadline, or a little earlier.
fn deadline(guard: &LockGuard) -> Instant {
    let now = Instant::now();
    now + guard.remaining()
}

/// A body that is polled again and again until it is stopped; when its last poll ended.
async fn busy(guard: &LockGuard) -> Instant {
    let mut last = None;
    let body = poll_fn(|cx| {
        thread::sleep(POLL);
        last = Some(Instant::now());
        cx.waker().wake_by_ref();
        Poll::<()>::Pending
    });
    let ended = guard.hold(body).await;
    assert!(matches!(ended, Err(LockError::Lost { .. })), "{ended:?}");
    last.expect("it was polled")
}

/// How long the last poll of a holder went on beside the first poll of the next one, if at all. `None` where the machine
/// has made a poll longer than the margin, which protects no such poll.
async fn overlap(locks: LockManager, others: LockManager, ends: Ends) -> Option<Duration> {
    let key = unique("key");
    let guard = within(TIME_LIMIT, ends.request(&locks, &key).acquire());
    let guard = guard.await.unwrap();
    let deadline = deadline(&guard);
    let next = others.lock(&key).ttl(LONG).wait(TIME_LIMIT).acquire();
    let first = aside(move || async move { (busy(&guard).await, guard) });
    let second = aside(move || async move {
        let guard = next.await.unwrap();
        guard.hold(async { Instant::now() }).await.unwrap()
    });
    // The guard lives on: its drop is not what lets the next one in.
    let ((last, _guard), entered) = tokio::join!(first, second);
    let short = matches!(ends, Ends::AtMaxHold) || last < deadline + MARGIN;
    short.then(|| last.saturating_duration_since(entered))
}

async fn overlaps(
    locks: &LockManager,
    others: &LockManager,
    trials: u32,
    ways: &[Ends],
) -> Vec<Duration> {
    let mut running = JoinSet::new();
    for _ in 0..trials {
        for ends in ways {
            running.spawn(overlap(locks.clone(), others.clone(), *ends));
        }
    }
    let found = running.join_all().await.into_iter().flatten();
    found.filter(|overlap| !overlap.is_zero()).collect()
}

async fn the_next_holder_enters_after_the_poll_that_runs(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let found = overlaps(&locks, &others, 3, &WAYS).await;
    assert!(found.is_empty(), "{found:?}");
}

/// The same, often.
async fn thirty_times(url: &str) {
    let (locks, others) = (connect(url).await, connect(url).await);
    for ends in WAYS {
        let found = overlaps(&locks, &others, 30, &[ends]).await;
        println!("{ends:?}: {} of 30 overlapped: {found:?}", found.len());
        assert!(found.is_empty(), "{found:?}");
    }
}

#[tokio::test]
#[ignore = "it is the same as on every store, more often"]
async fn thirty_times_on_redis() {
    thirty_times(&RedisServer::start().await.url()).await;
}

#[tokio::test]
#[ignore = "it is the same as on every store, more often"]
async fn thirty_times_in_memory() {
    thirty_times(&format!("memory:{}", unique("store"))).await;
}

/// The next waiter gets the lock no sooner than the margin after the end of a lease, whatever `beside` does with its guard.
async fn keeps_the_margin(store: Store, beside: impl AsyncFn(&LockGuard)) {
    let (locks, others) = (store.manager().await, store.manager().await);
    for ends in WAYS {
        let key = unique("key");
        let guard = within(TIME_LIMIT, ends.request(&locks, &key).acquire());
        let guard = guard.await.unwrap();
        let deadline = deadline(&guard);
        let next = others.lock(&key).ttl(LONG).wait(TIME_LIMIT).acquire();
        let next = tokio::select! {
            () = beside(&guard) => unreachable!("it never ends"),
            next = within(TIME_LIMIT, next) => next.unwrap(),
        };
        let early = (deadline + MARGIN).saturating_duration_since(Instant::now());
        assert!(early.is_zero(), "{ends:?}: {early:?} too early");
        assert!(!guard.is_held() && next.is_held());
    }
}

async fn a_guard_without_a_body_keeps_its_lock_for_the_margin(store: Store) {
    keeps_the_margin(store, async |_| pending().await).await;
}

async fn a_body_that_is_not_stopped_keeps_its_lock_for_the_margin(store: Store) {
    keeps_the_margin(store, async |guard| guard.hold_unstopped(pending()).await).await;
}

async fn a_guard_that_looks_beside_a_body_keeps_its_lock_for_the_margin(store: Store) {
    keeps_the_margin(store, async |guard| {
        let looks = async {
            assert!(guard.is_held());
            pending::<()>().await;
        };
        // The body is dropped when the lease ends.
        let (lost, ()) = tokio::join!(guard.hold(pending::<()>()), looks);
        assert!(lost.is_err());
    })
    .await;
}
