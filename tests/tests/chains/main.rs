//! Promise: a lock passes through a process without the server, and nothing that is promised about locks changes.
//!
//! Section: guarantees.md#a-lock-passes-through-a-process-without-the-server
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

mod breaks;
mod counted;
mod next;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use lock_runtime::{LockError, LockGuard, LockManager, LockRequest};
use tests::{APART, LONG, RedisServer, TIME_LIMIT, connect, eventually, take, within};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::sleep;

const KEY: &str = "key";

/// Tasks that wait for one lock, and which of them have had it.
struct Scene {
    server: RedisServer,
    had: Arc<Mutex<Vec<(String, u64)>>>,
    tasks: JoinSet<()>,
    /// How many may let go by now.
    may_go: watch::Sender<usize>,
}

impl Scene {
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

    /// One after the other joins the queue; each holds the lock until it may go.
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
        for (name, position) in names.iter().zip(before + 1..) {
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
            self.server.queued(KEY, position).await;
        }
    }

    async fn entered(&self, count: usize) {
        eventually(TIME_LIMIT, async || self.had.lock().unwrap().len() == count).await;
    }

    /// Who has had it in this order, each with a larger number than all before.
    fn order(&self) -> Vec<String> {
        let had = self.had.lock().unwrap();
        assert!(had.is_sorted_by(|a, b| a.1 < b.1), "{had:?}");
        had.iter().map(|(name, _)| name.clone()).collect()
    }

    async fn all(&mut self) {
        within(TIME_LIMIT, async {
            while let Some(done) = self.tasks.join_next().await {
                done.unwrap();
            }
        })
        .await;
    }
}

#[tokio::test]
async fn runs_of_one_process_pass_it_on_and_the_order_is_kept() {
    let mut scene = Scene::new().await;
    let (a, b, guard) = (
        scene.manager().await,
        scene.manager().await,
        scene.hold().await,
    );
    scene.join(&a, &["a1", "a2", "a3", "a4", "a5"]).await;
    scene.join(&b, &["b1"]).await;
    scene.join(&a, &["a6", "a7", "a8"]).await;
    scene.join(&b, &["b2", "b3"]).await;
    let before = scene.server.calls("evalsha").await;
    guard.release();
    scene.all().await;
    let expected = [
        "a1", "a2", "a3", "a4", "a5", "b1", "a6", "a7", "a8", "b2", "b3",
    ];
    assert_eq!(scene.order(), expected);
    let scripts = scene.server.calls("evalsha").await - before;
    assert!(scripts <= 7, "{scripts} scripts for twelve releases");
    eventually(TIME_LIMIT, async || {
        scene.server.traces(KEY).await.is_empty()
    })
    .await;
}

#[tokio::test]
async fn a_status_names_who_holds_it_now() {
    let mut scene = Scene::new().await;
    scene.may_go = watch::Sender::new(0);
    let (a, b) = (scene.manager().await, scene.manager().await);
    let guard = scene.hold().await;
    scene.join(&a, &["a1", "a2", "a3", "a4"]).await;
    scene.join(&b, &["b1"]).await;
    guard.release();
    scene.entered(1).await;
    // The first holds it for longer than clocks differ.
    sleep(Duration::from_millis(100)).await;
    let handed_over = Instant::now();
    scene.may_go.send_replace(1);
    scene.entered(2).await;
    eventually(TIME_LIMIT, async || {
        let status = b.status(KEY).await.unwrap();
        let holder = &status.holders[0];
        assert_eq!(holder.process, Some(std::process::id()));
        // The holder may not have answered in time.
        let (Some(since), Some(fence)) = (holder.since, holder.fencing_token) else {
            return false;
        };
        let held = since.elapsed().unwrap_or_default();
        assert!(
            held < handed_over.elapsed() + Duration::from_millis(50),
            "it counts from its own entry"
        );
        assert_eq!(status.waiting, 3, "two of the chain, and one in the queue");
        fence.get() == scene.had.lock().unwrap()[1].1
    })
    .await;
    scene.may_go.send_replace(usize::MAX);
    scene.all().await;
    assert_eq!(scene.order(), ["a1", "a2", "a3", "a4", "b1"]);
}

#[tokio::test]
async fn who_gives_up_in_a_chain_is_skipped() {
    let mut scene = Scene::new().await;
    scene.may_go = watch::Sender::new(0);
    let (a, guard) = (scene.manager().await, scene.hold().await);
    scene.join(&a, &["a1"]).await;
    let short = tokio::spawn(
        a.lock(KEY)
            .ttl(LONG)
            .wait(Duration::from_millis(700))
            .acquire(),
    );
    scene.server.queued(KEY, 2).await;
    let dropped = tokio::spawn(a.lock(KEY).ttl(LONG).wait_forever().acquire());
    scene.server.queued(KEY, 3).await;
    scene.join(&a, &["a2", "a3"]).await;
    guard.release();
    scene.entered(1).await;
    scene.server.queued(KEY, 0).await;
    dropped.abort();
    let refused = within(TIME_LIMIT, short).await.unwrap();
    assert!(
        matches!(refused, Err(LockError::Contended { .. })),
        "{refused:?}"
    );
    scene.may_go.send_replace(usize::MAX);
    scene.all().await;
    assert_eq!(scene.order(), ["a1", "a2", "a3"]);
    eventually(TIME_LIMIT, async || {
        scene.server.traces(KEY).await.is_empty()
    })
    .await;
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
        let request = locks.lock(KEY).ttl(Duration::from_secs(1)).wait_forever();
        let last = Arc::clone(&last);
        tasks.spawn(async move {
            let work = request.run(async |lock| {
                let fence = lock.fencing_token().get();
                assert!(last.fetch_max(fence, Ordering::SeqCst) < fence);
                sleep(Duration::from_millis(60)).await;
            });
            work.await.unwrap();
        });
    }
    server.queued(KEY, COUNT as u64).await;
    guard.release();
    within(TIME_LIMIT, async {
        while let Some(done) = tasks.join_next().await {
            done.unwrap();
        }
    })
    .await;
}

#[tokio::test]
async fn a_fixed_lease_in_a_chain_lasts_for_its_ttl() {
    const TTL: Duration = Duration::from_millis(2_400);
    let mut scene = Scene::new().await;
    let (a, guard) = (scene.manager().await, scene.hold().await);
    let mut works: Vec<JoinHandle<_>> = Vec::new();
    // The second one enters in time not to confirm the lease, and stays until after its end.
    for (position, time) in (1..).zip([TTL / 4, TTL * 3 / 4]) {
        let request = a.lock(KEY).ttl(TTL).renew(false).wait_forever();
        let work = request.run(async move |_| sleep(time).await);
        works.push(tokio::spawn(work));
        scene.server.queued(KEY, position).await;
    }
    guard.release();
    for work in works {
        within(TIME_LIMIT, work).await.unwrap().unwrap();
    }
    scene.all().await;
}

#[tokio::test]
async fn one_with_a_cooldown_is_not_part_of_a_chain() {
    const COOLDOWN: Duration = Duration::from_secs(1);
    let mut scene = Scene::new().await;
    let (a, guard) = (scene.manager().await, scene.hold().await);
    scene.join(&a, &["a1", "a2"]).await;
    scene
        .join_as(&a, &["cools down"], |it| {
            it.min_hold(COOLDOWN).wait_forever()
        })
        .await;
    scene.join(&a, &["a3", "a4"]).await;
    guard.release();
    scene.entered(3).await;
    let released = Instant::now();
    scene.all().await;
    assert!(released.elapsed() > COOLDOWN * 8 / 10, "a short cooldown");
    assert_eq!(scene.order(), ["a1", "a2", "cools down", "a3", "a4"]);
}

#[tokio::test]
async fn only_the_last_of_several_keys_is_handed_over() {
    let server = RedisServer::start().await;
    let a = connect(server.url()).await;
    let held = connect(server.url()).await;
    let (first, last) = (take(&held, "a", LONG).await, take(&held, "b", LONG).await);
    let several: Vec<_> = (1..=3)
        .map(|_| tokio::spawn(a.lock_all(["a", "b"]).ttl(LONG).wait_forever().acquire()))
        .collect();
    server.queued("a", 3).await;
    let lasts: Vec<_> = (1..=2)
        .map(|_| tokio::spawn(a.lock("b").ttl(LONG).wait_forever().acquire()))
        .collect();
    server.queued("b", 2).await;
    first.release();
    server.queued("b", 3).await;
    assert_eq!(
        server.waiting("a").await,
        2,
        "each is granted the first key alone"
    );
    last.release();
    let mut fences = Vec::new();
    for guard in lasts.into_iter().chain(several) {
        let guard = within(TIME_LIMIT, guard).await.unwrap().unwrap();
        fences.push(guard.fencing_token().get());
    }
    assert!(fences.is_sorted_by(|a, b| a < b), "{fences:?}");
}
