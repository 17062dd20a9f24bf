//! Promise: a lock passes through a process without the server, and nothing that is promised about locks changes.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use lock_runtime::{LockError, LockGuard, LockManager, LockRequest};
use tests::{LONG, PATIENCE, Peer, Proxy, RedisServer, Worker, connect, eventually, take, within};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::sleep;

const KEY: &str = "key";
/// Longer than the window within which the order may change.
const APART: Duration = Duration::from_millis(2);

/// Tasks that stand in line for one lock, and who has had it.
struct Line {
    server: RedisServer,
    had: Arc<Mutex<Vec<(String, u64)>>>,
    tasks: JoinSet<()>,
    /// How many may let go by now.
    may_go: watch::Sender<usize>,
}

impl Line {
    async fn new() -> Self {
        Self {
            server: RedisServer::start().await,
            had: Arc::default(),
            tasks: JoinSet::new(),
            may_go: watch::Sender::new(usize::MAX),
        }
    }

    async fn manager(&self) -> LockManager {
        connect(self.server.url()).await
    }

    /// Somebody else holds the lock, and lets go when this is dropped.
    async fn hold(&self) -> LockGuard {
        take(&self.manager().await, KEY, LONG).await
    }

    /// One after the other stands in line; each holds the lock until it may go.
    async fn join(&mut self, locks: &LockManager, names: &[&str]) {
        self.join_as(locks, names, LockRequest::wait_forever).await;
    }

    async fn join_as(
        &mut self,
        locks: &LockManager,
        names: &[&str],
        how: fn(LockRequest) -> LockRequest,
    ) {
        let before = self.server.waiting(KEY).await;
        for (name, place) in names.iter().zip(before + 1..) {
            sleep(APART).await;
            let request = how(locks.lock(KEY).ttl(LONG));
            let (name, had) = ((*name).to_owned(), Arc::clone(&self.had));
            let mut may_go = self.may_go.subscribe();
            self.tasks.spawn(async move {
                let guard = request.acquire().await.unwrap();
                let number = {
                    let mut had = had.lock().unwrap();
                    had.push((name, guard.fencing_token().get()));
                    had.len()
                };
                may_go.wait_for(|count| number <= *count).await.unwrap();
                guard.release_confirmed().await.unwrap();
            });
            self.server.in_line(KEY, place).await;
        }
    }

    async fn entered(&self, count: usize) {
        eventually(PATIENCE, async || self.had.lock().unwrap().len() == count).await;
    }

    /// Who has had it in this order, each with a larger number than all before.
    fn order(&self) -> Vec<String> {
        let had = self.had.lock().unwrap();
        assert!(had.is_sorted_by(|a, b| a.1 < b.1), "{had:?}");
        had.iter().map(|(name, _)| name.clone()).collect()
    }

    async fn all(&mut self) {
        within(PATIENCE, async {
            while let Some(done) = self.tasks.join_next().await {
                done.unwrap();
            }
        })
        .await;
    }
}

#[tokio::test]
async fn runs_of_one_process_pass_it_on_and_the_order_is_kept() {
    let mut line = Line::new().await;
    let (a, b, guard) = (
        line.manager().await,
        line.manager().await,
        line.hold().await,
    );
    line.join(&a, &["a1", "a2", "a3", "a4", "a5"]).await;
    line.join(&b, &["b1"]).await;
    line.join(&a, &["a6", "a7", "a8"]).await;
    line.join(&b, &["b2", "b3"]).await;
    let before = line.server.calls("evalsha").await;
    guard.release();
    line.all().await;
    let expected = [
        "a1", "a2", "a3", "a4", "a5", "b1", "a6", "a7", "a8", "b2", "b3",
    ];
    assert_eq!(line.order(), expected);
    let scripts = line.server.calls("evalsha").await - before;
    assert!(scripts <= 7, "{scripts} scripts for twelve releases");
    eventually(PATIENCE, async || line.server.traces(KEY).await.is_empty()).await;
}

#[tokio::test]
async fn a_status_names_who_holds_it_now() {
    let mut line = Line::new().await;
    line.may_go = watch::Sender::new(0);
    let (a, b) = (line.manager().await, line.manager().await);
    let guard = line.hold().await;
    line.join(&a, &["a1", "a2", "a3", "a4"]).await;
    line.join(&b, &["b1"]).await;
    guard.release();
    line.entered(1).await;
    // The first holds it for longer than clocks differ.
    sleep(Duration::from_millis(100)).await;
    let passed_on = Instant::now();
    line.may_go.send_replace(1);
    line.entered(2).await;
    eventually(PATIENCE, async || {
        let status = b.status(KEY).await.unwrap();
        let holder = &status.holders[0];
        assert_eq!(holder.process, Some(std::process::id()));
        // Nobody has told about it in time, perhaps.
        let (Some(since), Some(fence)) = (holder.since, holder.fence) else {
            return false;
        };
        let held = since.elapsed().unwrap_or_default();
        assert!(
            held < passed_on.elapsed() + Duration::from_millis(50),
            "it counts from its own entry"
        );
        assert_eq!(status.waiters, 3, "two of the chain, and one in line");
        fence.get() == line.had.lock().unwrap()[1].1
    })
    .await;
    line.may_go.send_replace(usize::MAX);
    line.all().await;
    assert_eq!(line.order(), ["a1", "a2", "a3", "a4", "b1"]);
}

#[tokio::test]
async fn who_gives_up_in_a_chain_is_skipped() {
    let mut line = Line::new().await;
    line.may_go = watch::Sender::new(0);
    let (a, guard) = (line.manager().await, line.hold().await);
    line.join(&a, &["a1"]).await;
    let short = tokio::spawn(
        a.lock(KEY)
            .ttl(LONG)
            .wait(Duration::from_millis(700))
            .acquire(),
    );
    line.server.in_line(KEY, 2).await;
    let dropped = tokio::spawn(a.lock(KEY).ttl(LONG).wait_forever().acquire());
    line.server.in_line(KEY, 3).await;
    line.join(&a, &["a2", "a3"]).await;
    guard.release();
    line.entered(1).await;
    line.server.in_line(KEY, 0).await;
    dropped.abort();
    let refused = within(PATIENCE, short).await.unwrap();
    assert!(
        matches!(refused, Err(LockError::Contended { .. })),
        "{refused:?}"
    );
    line.may_go.send_replace(usize::MAX);
    line.all().await;
    assert_eq!(line.order(), ["a1", "a2", "a3"]);
    eventually(PATIENCE, async || line.server.traces(KEY).await.is_empty()).await;
}

#[tokio::test]
async fn a_long_chain_is_renewed() {
    const COUNT: usize = 30;
    let server = RedisServer::start().await;
    let (locks, guard) = (
        connect(server.url()).await,
        take(&connect(server.url()).await, KEY, LONG).await,
    );
    let (last, mut tasks) = (Arc::new(AtomicU64::new(0)), JoinSet::new());
    for _ in 0..COUNT {
        let request = locks
            .lock(KEY)
            .ttl(Duration::from_millis(500))
            .wait_forever();
        let last = Arc::clone(&last);
        tasks.spawn(async move {
            let work = request.run(async |lock| {
                let fence = lock.fencing_token().get();
                assert!(last.fetch_max(fence, Ordering::SeqCst) < fence);
                sleep(Duration::from_millis(40)).await;
            });
            work.await.unwrap();
        });
    }
    server.in_line(KEY, COUNT as u64).await;
    guard.release();
    within(PATIENCE, async {
        while let Some(done) = tasks.join_next().await {
            done.unwrap();
        }
    })
    .await;
}

#[tokio::test]
async fn a_fixed_lease_in_a_chain_lasts_for_its_ttl() {
    const TTL: Duration = Duration::from_millis(800);
    let mut line = Line::new().await;
    let (a, guard) = (line.manager().await, line.hold().await);
    let works: Vec<JoinHandle<_>> = (1..=3)
        .map(|_| {
            let request = a.lock(KEY).ttl(TTL).renew(false).wait_forever();
            tokio::spawn(request.run(async |_| {
                let entered = Instant::now();
                // Half of it, and never the whole of it.
                sleep(TTL / 2).await;
                entered.elapsed()
            }))
        })
        .collect();
    line.server.in_line(KEY, 3).await;
    guard.release();
    for work in works {
        within(PATIENCE, work).await.unwrap().unwrap();
    }
    line.all().await;
}

#[tokio::test]
async fn one_that_rests_is_not_part_of_a_chain() {
    const REST: Duration = Duration::from_secs(1);
    let mut line = Line::new().await;
    let (a, guard) = (line.manager().await, line.hold().await);
    line.join(&a, &["a1", "a2"]).await;
    line.join_as(&a, &["rests"], |it| it.min_hold(REST).wait_forever())
        .await;
    line.join(&a, &["a3", "a4"]).await;
    guard.release();
    line.entered(3).await;
    let rests = Instant::now();
    line.all().await;
    assert!(rests.elapsed() > REST * 8 / 10, "it rested too short");
    assert_eq!(line.order(), ["a1", "a2", "rests", "a3", "a4"]);
}

#[tokio::test]
async fn only_the_last_of_several_keys_is_passed_on() {
    let server = RedisServer::start().await;
    let a = connect(server.url()).await;
    let held = connect(server.url()).await;
    let (first, last) = (take(&held, "a", LONG).await, take(&held, "b", LONG).await);
    let several: Vec<_> = (1..=3)
        .map(|_| tokio::spawn(a.lock_all(["a", "b"]).ttl(LONG).wait_forever().acquire()))
        .collect();
    server.in_line("a", 3).await;
    let lasts: Vec<_> = (1..=2)
        .map(|_| tokio::spawn(a.lock("b").ttl(LONG).wait_forever().acquire()))
        .collect();
    server.in_line("b", 2).await;
    first.release();
    server.in_line("b", 3).await;
    assert_eq!(
        server.waiting("a").await,
        2,
        "each is granted the first key alone"
    );
    last.release();
    let mut fences = Vec::new();
    for guard in lasts.into_iter().chain(several) {
        let guard = within(PATIENCE, guard).await.unwrap().unwrap();
        fences.push(guard.fencing_token().get());
    }
    assert!(fences.is_sorted_by(|a, b| a < b), "{fences:?}");
}

#[tokio::test]
async fn a_forced_release_ends_one_and_the_others_keep_their_places() {
    let mut line = Line::new().await;
    let (a, b, guard) = (
        line.manager().await,
        line.manager().await,
        line.hold().await,
    );
    let forced = tokio::spawn({
        let request = a.lock(KEY).ttl(LONG).wait_forever();
        request.run(async |_| std::future::pending::<()>().await)
    });
    line.server.in_line(KEY, 1).await;
    line.join(&a, &["a1", "a2", "a3"]).await;
    line.join(&b, &["b1", "b2", "b3"]).await;
    guard.release();
    line.server.in_line(KEY, 3).await;
    assert_eq!(b.force_release(KEY).await.unwrap(), 1);
    let lost = within(PATIENCE, forced).await.unwrap();
    assert!(matches!(lost, Err(LockError::Lost { .. })), "{lost:?}");
    line.all().await;
    let mut order = line.order();
    assert_eq!(order.len(), 6, "{order:?}");
    order.retain(|name| name.starts_with('a'));
    assert_eq!(order, ["a1", "a2", "a3"]);
}

#[tokio::test]
async fn the_loss_of_the_lock_is_told_to_all_who_follow() {
    let mut line = Line::new().await;
    let (a, b, guard) = (
        line.manager().await,
        line.manager().await,
        line.hold().await,
    );
    let ttl = Duration::from_millis(600);
    let lost = tokio::spawn({
        let request = a.lock(KEY).ttl(ttl).wait_forever();
        request.run(async |_| std::future::pending::<()>().await)
    });
    line.server.in_line(KEY, 1).await;
    line.join_as(&a, &["a1", "a2"], |it| {
        it.ttl(Duration::from_millis(600)).wait_forever()
    })
    .await;
    guard.release();
    line.server.in_line(KEY, 0).await;
    // As when the server has forgotten it.
    line.server
        .cmd(&["DEL", &RedisServer::owner_key(KEY)])
        .await;
    let taken = take(&b, KEY, LONG).await;
    let lost = within(PATIENCE, lost).await.unwrap();
    assert!(matches!(lost, Err(LockError::Lost { .. })), "{lost:?}");
    line.server.in_line(KEY, 2).await;
    assert!(line.order().is_empty(), "they wait in line again");
    let fence = taken.fencing_token().get();
    taken.release();
    line.all().await;
    assert_eq!(line.order(), ["a1", "a2"]);
    assert!(line.had.lock().unwrap()[0].1 > fence);
}

/// A process with a chain, and one that waits behind it. The process stops before it hears
/// of its grant.
async fn stopped_chain() -> (Line, Worker) {
    let mut line = Line::new().await;
    let program = env!("CARGO_BIN_EXE_worker");
    let mut other = Worker::locker(program, &line.server.url()).await;
    let (b, guard) = (line.manager().await, line.hold().await);
    for place in 1..=20 {
        other.send(&format!("pass {place} {KEY}")).await;
        line.server.in_line(KEY, place).await;
    }
    line.join(&b, &["b1", "b2"]).await;
    other.pause();
    guard.release();
    // All of them are handed it, and none is there.
    line.server.in_line(KEY, 2).await;
    (line, other)
}

#[tokio::test]
async fn a_process_that_stops_in_a_chain_costs_one_grant() {
    let (mut line, mut other) = stopped_chain().await;
    let started = Instant::now();
    line.all().await;
    let took = started.elapsed();
    assert!(took < Duration::from_secs(6), "{took:?}");
    other.resume();
    let mut last = line.had.lock().unwrap()[1].1;
    for place in 1..=20 {
        let text = within(PATIENCE, other.line()).await;
        let fence = text.strip_prefix(&format!("{place} granted "));
        let fence: u64 = fence.unwrap_or_else(|| panic!("{text}")).parse().unwrap();
        assert!(fence > last, "{text}, after {last}");
        last = fence;
    }
}

#[tokio::test]
async fn a_process_that_dies_in_a_chain_costs_one_grant() {
    let (mut line, mut other) = stopped_chain().await;
    other.kill().await;
    let started = Instant::now();
    line.all().await;
    let took = started.elapsed();
    assert!(took < Duration::from_secs(6), "{took:?}");
}

#[tokio::test]
async fn a_connection_that_breaks_in_a_chain_costs_nobody_its_place() {
    let mut line = Line::new().await;
    line.may_go = watch::Sender::new(0);
    let proxy = Proxy::start(line.server.addr());
    let (a, b, guard) = (
        connect(proxy.url()).await,
        line.manager().await,
        line.hold().await,
    );
    let names: Vec<_> = (1..=8).map(|number| format!("a{number}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    line.join(&a, &names).await;
    line.join(&b, &["b1"]).await;
    guard.release();
    for count in 1..=4 {
        line.entered(count).await;
        proxy.cut().await;
        line.may_go.send_replace(count);
    }
    line.may_go.send_replace(usize::MAX);
    line.all().await;
    let mut order = line.order();
    assert_eq!(order.len(), 9, "{order:?}");
    order.retain(|name| name.starts_with('a'));
    assert_eq!(order, names);
}

/// One that polls for its grants, with the scripts of the release before there were chains.
async fn turns_of_before(mut peer: Peer, numbers: std::ops::Range<u32>, work: Arc<Work>) {
    const TTL: u32 = 10_000;
    for number in numbers {
        if peer.acquire(number, TTL, true).await[1] == "waiting" {
            while peer.ask(number, TTL).await == "waiting" {
                sleep(Duration::from_millis(5)).await;
            }
        }
        let inside = work.enter();
        sleep(Duration::from_micros(300)).await;
        drop(inside);
        assert!(peer.release(number).await);
    }
}

/// Who is inside.
#[derive(Default)]
struct Work {
    inside: AtomicU64,
    turns: AtomicU64,
}

struct Inside<'a>(&'a Work);

impl Work {
    fn enter(&self) -> Inside<'_> {
        assert_eq!(
            self.inside.fetch_add(1, Ordering::SeqCst),
            0,
            "two are inside"
        );
        self.turns.fetch_add(1, Ordering::SeqCst);
        Inside(self)
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.inside.fetch_sub(1, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn clients_of_before_take_turns_with_chains() {
    const TASKS: u64 = 6;
    const TURNS: u64 = 15;
    let server = RedisServer::start().await;
    let (work, last) = (Arc::new(Work::default()), Arc::new(AtomicU64::new(0)));
    let mut tasks = JoinSet::new();
    for number in 0..2 {
        let peer = Peer::new(&server, KEY, true).await.of_before();
        let numbers = 1_000 * number..1_000 * number + 15;
        tasks.spawn(turns_of_before(peer, numbers, Arc::clone(&work)));
        let locks = connect(server.url()).await;
        for _ in 0..TASKS {
            let (locks, work, last) = (locks.clone(), Arc::clone(&work), Arc::clone(&last));
            tasks.spawn(async move {
                for _ in 0..TURNS {
                    let request = locks.lock(KEY).ttl(Duration::from_secs(10)).wait_forever();
                    let guard = request.acquire().await.unwrap();
                    let inside = work.enter();
                    let fence = guard.fencing_token().get();
                    assert!(last.fetch_max(fence, Ordering::SeqCst) < fence);
                    tokio::task::yield_now().await;
                    drop(inside);
                    guard.release();
                }
            });
        }
    }
    within(PATIENCE, async {
        while let Some(done) = tasks.join_next().await {
            done.unwrap();
        }
    })
    .await;
    assert_eq!(work.turns.load(Ordering::SeqCst), 2 * (TASKS + 1) * TURNS);
    eventually(PATIENCE, async || server.traces(KEY).await.is_empty()).await;
}
