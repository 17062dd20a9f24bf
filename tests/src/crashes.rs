//! Servers that crash, or are replaced, again and again under load: how often a lock is granted to two.

use std::{collections::HashMap, env, fmt::Debug, sync::Arc, time::Duration};

use lock_runtime::{LockConfig, LockGuard, LockManager};
use tokio::{
    sync::watch,
    task::{JoinHandle, JoinSet},
    time::{sleep, timeout},
};

use crate::{Worker, connect, unique};

/// How many locks are taken right before each crash.
const LOCKS: usize = 24;
/// How long the first manager may take to be granted them.
const SOON: Duration = Duration::from_millis(250);
/// Longer than a restart takes: else no lock is held that could be granted again.
pub const LEASE: Duration = Duration::from_secs(2);
const AT_ONCE: Duration = Duration::from_millis(500);
/// Past the end of a lease and of the quarantine.
const PAST_QUARANTINE: Duration = Duration::from_secs(5);
/// The load: processes, the tasks of each, and the locks that they take.
const LOAD: [u64; 3] = [3, 4, 8];

/// What crashes.
pub trait Crashing: Debug {
    /// Where the locks are, with leases of [`LEASE`].
    fn url(&self) -> String;

    /// Whether nothing is granted for a while after a crash.
    fn is_quarantined(&self) -> bool;

    /// What happens right before locks are taken.
    fn prepare(&mut self, _round: usize) -> impl Future<Output = ()> {
        async {}
    }

    /// The crash.
    fn strike(&mut self) -> impl Future<Output = ()>;

    /// What makes all well again.
    fn mend(&mut self) -> impl Future<Output = ()> {
        async {}
    }
}

/// What so many crashes have shown.
#[derive(Debug, Default)]
struct Seen {
    crashes: usize,
    granted: usize,
    again: usize,
    /// How many of these while the first holder was sure of its lock.
    doubles: usize,
    /// What the processes of the load say.
    holds: usize,
    overlaps: usize,
}

async fn crash(mut servers: impl Crashing, worker: &str, crashes: usize) -> Seen {
    let load = Load::start(&servers.url(), worker).await;
    let limit = if servers.is_quarantined() {
        PAST_QUARANTINE
    } else {
        AT_ONCE
    };
    let first = manager(&servers.url()).await;
    let mut seen = Seen::default();
    for round in 0..crashes {
        // The last quarantine has ended, if there was one.
        let before = acquire(first.clone(), 4 * PAST_QUARANTINE).await;
        assert_eq!(before.len(), LOCKS, "{:?}", first.health().await);
        drop(before);
        servers.prepare(round).await;
        let acquiring = tokio::spawn(acquire(first.clone(), SOON));
        // Some are granted by then, and some are on their way.
        sleep(Duration::from_millis(fastrand::u64(5..200))).await;
        servers.strike().await;
        let guards = Arc::new(acquiring.await.expect("no panic"));
        let second = manager(&servers.url()).await;
        let before = acquire_again(&second, &guards, limit).await;
        servers.mend().await;
        let after = acquire_again(&second, &guards, AT_ONCE).await;
        seen.crashes += 1;
        seen.granted += guards.len();
        seen.again += before.0 + after.0;
        seen.doubles += before.1 + after.1;
        if (round + 1).is_multiple_of(20) {
            println!("{servers:?} {seen:?}");
        }
    }
    let holds = load.end().await;
    seen.holds = holds.len();
    seen.overlaps = overlaps(holds);
    println!("{servers:?}: {seen:?}");
    seen
}

async fn manager(url: &str) -> LockManager {
    let config = LockConfig::new(url).expect("a URL");
    connect(config.unavailable_wait_forever().lazy()).await
}

/// Takes locks that nobody has had, as far as they are granted within such a time.
async fn acquire(locks: LockManager, limit: Duration) -> Vec<LockGuard> {
    let mut tasks = JoinSet::new();
    for _ in 0..LOCKS {
        let pause = Duration::from_millis(fastrand::u64(..100));
        let acquire = locks.lock(unique("crash")).wait_forever().acquire();
        tasks.spawn(timeout(limit, async move {
            sleep(pause).await;
            acquire.await
        }));
    }
    let mut guards = Vec::new();
    for outcome in tasks.join_all().await {
        match outcome {
            Ok(Ok(guard)) => guards.push(guard),
            Ok(Err(error)) => println!("not granted: {error}"),
            Err(_too_late) => {}
        }
    }
    guards
}

/// Takes the same locks elsewhere: how many are granted, and how many of these while the guards are sure of them.
async fn acquire_again(
    locks: &LockManager,
    guards: &Arc<Vec<LockGuard>>,
    limit: Duration,
) -> (usize, usize) {
    let mut tasks = JoinSet::new();
    for number in 0..guards.len() {
        let guards = Arc::clone(guards);
        let acquire = locks.lock(guards[number].key().clone()).wait_forever();
        let acquire = timeout(limit, acquire.acquire());
        tasks.spawn(async move {
            let again = acquire.await.ok()?.ok()?;
            Some(guards[number].is_held() && again.is_held())
        });
    }
    let granted: Vec<bool> = tasks.join_all().await.into_iter().flatten().collect();
    let doubles = granted.iter().filter(|held| **held).count();
    (granted.len(), doubles)
}

/// Somebody held a lock for certain at these times, in nanoseconds.
struct Hold {
    key: String,
    from: u128,
    until: u128,
}

/// Processes that hold locks for a while each.
struct Load {
    stop: watch::Sender<bool>,
    processes: Vec<JoinHandle<Vec<Hold>>>,
}

impl Load {
    async fn start(url: &str, program: &str) -> Self {
        let [processes, tasks, keys] = LOAD;
        let stop = watch::Sender::new(false);
        let mut running = Vec::new();
        for _ in 0..processes {
            let (tasks, keys) = (tasks.to_string(), keys.to_string());
            let args = ["holds", url, &tasks, &keys];
            let mut worker = Worker::spawn(program, args).await;
            assert_eq!(worker.line().await, "connected");
            running.push(tokio::spawn(gather(worker, stop.subscribe())));
        }
        Self {
            stop,
            processes: running,
        }
    }

    async fn end(self) -> Vec<Hold> {
        self.stop.send_replace(true);
        let mut holds = Vec::new();
        for process in self.processes {
            holds.extend(process.await.expect("no panic"));
        }
        holds
    }
}

async fn gather(mut worker: Worker, mut stop: watch::Receiver<bool>) -> Vec<Hold> {
    let mut holds = Vec::new();
    loop {
        let line = tokio::select! {
            line = worker.line() => line,
            Ok(()) = stop.changed() => {
                worker.send("stop").await;
                continue;
            }
        };
        let words: Vec<_> = line.split(' ').collect();
        let [key, _fence, from, until] = words[..] else {
            assert_eq!(line, "done");
            return holds;
        };
        holds.push(Hold {
            key: key.to_owned(),
            from: from.parse().expect("a number"),
            until: until.parse().expect("a number"),
        });
    }
}

/// How often somebody was granted a lock while somebody else was sure of it.
fn overlaps(mut holds: Vec<Hold>) -> usize {
    holds.sort_by_key(|it| it.from);
    let mut held_until: HashMap<String, u128> = HashMap::new();
    let mut overlaps = 0;
    for hold in holds {
        let last = held_until.entry(hold.key).or_default();
        overlaps += usize::from(hold.from < *last);
        *last = hold.until.max(*last);
    }
    overlaps
}

/// So many crashes, or as many as the environment's `LOCK_ROUNDS` says: nothing is granted to two. `worker` is the program.
pub async fn none_is_granted_twice(servers: Option<impl Crashing>, worker: &str) {
    let Some(servers) = servers else { return };
    let seen = crash(servers, worker, rounds()).await;
    assert_eq!((seen.doubles, seen.overlaps), (0, 0), "{seen:?}");
    assert!(seen.granted >= seen.crashes && seen.holds > 0, "{seen:?}");
}

/// A check of the tests beside it.
pub async fn some_are_granted_twice(servers: Option<impl Crashing>, worker: &str) {
    let Some(servers) = servers else { return };
    let seen = crash(servers, worker, rounds().min(20)).await;
    assert!(seen.doubles > 0, "{seen:?}");
}

fn rounds() -> usize {
    env::var("LOCK_ROUNDS").map_or(100, |it| it.parse().expect("a number"))
}
