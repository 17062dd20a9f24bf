//! Servers that crash, and standbys that are promoted, again and again under load: no lock is granted twice, unless nothing
//! protects it.
//!
//! Section: postgres.md#what-it-promises

use std::{collections::HashMap, env, sync::Arc, time::Duration};

use lock_runtime::{LockConfig, LockGuard, LockManager};
use tests::{Fate, PostgresPair, PostgresServer, TIME_LIMIT, Worker, connect, eventually, unique};
use tokio::{
    sync::watch,
    task::{JoinHandle, JoinSet},
    time::{sleep, timeout},
};

const TEST: &str = "tests/postgres";
/// How many locks are taken right before each crash.
const LOCKS: usize = 24;
/// How long the first manager may take to be granted them.
const SOON: Duration = Duration::from_millis(250);
/// Longer than a restart takes: else no lock is held that could be granted again.
const LEASE: Duration = Duration::from_secs(2);
const AT_ONCE: Duration = Duration::from_millis(500);
/// Past the end of a lease and of the quarantine.
const PAST_QUARANTINE: Duration = Duration::from_secs(5);
/// The load: processes, the tasks of each, and the locks that they take.
const LOAD: [u64; 3] = [3, 4, 8];

/// What keeps a lock from being granted twice.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Protection {
    Nothing,
    /// Grants wait for the disk.
    Disk,
    Quarantine,
    /// Grants wait for the standby.
    Standby,
}

/// What crashes.
enum Servers {
    One(Box<PostgresServer>, Protection),
    Pair(Box<PostgresPair>, Protection),
}

impl Servers {
    async fn one(protection: Protection) -> Option<Self> {
        let server = PostgresServer::start(TEST).await?;
        if protection == Protection::Nothing {
            // Grants that do not wait for the disk are refused without a quarantine.
            connect(&*server.url()).await.shutdown().await;
            let none = "CREATE OR REPLACE FUNCTION lock_runtime.quarantine_left(longest int) RETURNS bigint \
                        LANGUAGE sql AS 'SELECT 0::bigint'";
            server.cmd(none).await;
        }
        Some(Self::One(Box::new(server), protection))
    }

    async fn pair(protection: Protection) -> Option<Self> {
        let pair = match protection {
            Protection::Standby => PostgresPair::start_synchronous(TEST).await?,
            _ => PostgresPair::start(TEST).await?,
        };
        Some(Self::Pair(Box::new(pair), protection))
    }

    fn protection(&self) -> Protection {
        match self {
            Self::One(_, it) | Self::Pair(_, it) => *it,
        }
    }

    fn url(&self) -> String {
        let lease = format!("ttl={}ms", LEASE.as_millis());
        let quarantine = format!("quarantine={}ms", LEASE.as_millis());
        match self {
            Self::One(server, Protection::Disk) => format!("{}?{lease}", server.url()),
            Self::One(server, _) => {
                format!("{}?{lease}&{quarantine}&commit=async", server.url())
            }
            Self::Pair(pair, Protection::Quarantine) => {
                format!("{}?{lease}&{quarantine}", pair.url())
            }
            Self::Pair(pair, Protection::Standby) => format!("{}?{lease}&replicas=1", pair.url()),
            Self::Pair(pair, _) => format!("{}?{lease}", pair.url()),
        }
    }

    /// In every second round, the standby does not hear of what is granted from now on.
    async fn prepare(&mut self, round: usize) {
        let Self::Pair(pair, _) = self else { return };
        if round.is_multiple_of(2) {
            let standby = 1 - pair.place();
            pair.server_mut(standby).stop();
            let connected = "SELECT pg_terminate_backend(pid) FROM pg_stat_replication";
            let is_alone = async || pair.primary().cmd(connected).await.is_empty();
            eventually(TIME_LIMIT, is_alone).await;
        }
    }

    async fn strike(&mut self) {
        match self {
            Self::One(server, _) => server.restart().await,
            Self::Pair(pair, _) => {
                let (primary, standby) = (pair.place(), 1 - pair.place());
                pair.server_mut(primary).kill().await;
                pair.server_mut(standby).resume();
                pair.fail_over(Fate::Killed).await;
            }
        }
    }

    async fn mend(&mut self) {
        if let Self::Pair(pair, _) = self {
            pair.mend().await;
        }
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

async fn crash(mut servers: Servers, crashes: usize) -> Seen {
    let load = Load::start(&servers.url()).await;
    let limit = match servers.protection() {
        Protection::Quarantine => PAST_QUARANTINE,
        _ => AT_ONCE,
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
        let guards = Arc::new(acquiring.await.unwrap());
        let second = manager(&servers.url()).await;
        let before = acquire_again(&second, &guards, limit).await;
        servers.mend().await;
        let after = acquire_again(&second, &guards, AT_ONCE).await;
        seen.crashes += 1;
        seen.granted += guards.len();
        seen.again += before.0 + after.0;
        seen.doubles += before.1 + after.1;
        if (round + 1).is_multiple_of(20) {
            println!("{:?} {seen:?}", servers.protection());
        }
    }
    let holds = load.end().await;
    seen.holds = holds.len();
    seen.overlaps = overlaps(holds);
    println!("{:?}: {seen:?}", servers.protection());
    seen
}

async fn manager(url: &str) -> LockManager {
    let config = LockConfig::new(url).unwrap();
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
    async fn start(url: &str) -> Self {
        let [processes, tasks, keys] = LOAD;
        let stop = watch::Sender::new(false);
        let mut running = Vec::new();
        for _ in 0..processes {
            let (tasks, keys) = (tasks.to_string(), keys.to_string());
            let args = ["holds", url, &tasks, &keys];
            let mut worker = Worker::spawn(env!("CARGO_BIN_EXE_worker"), args).await;
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
            holds.extend(process.await.unwrap());
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
            from: from.parse().unwrap(),
            until: until.parse().unwrap(),
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

/// So many crashes, or as many as the environment's `LOCK_ROUNDS` says.
fn rounds() -> usize {
    env::var("LOCK_ROUNDS").map_or(100, |it| it.parse().unwrap())
}

async fn none_is_granted_twice(servers: Option<Servers>) {
    let Some(servers) = servers else { return };
    let seen = crash(servers, rounds()).await;
    assert_eq!((seen.doubles, seen.overlaps), (0, 0), "{seen:?}");
    assert!(seen.granted >= seen.crashes && seen.holds > 0, "{seen:?}");
}

/// A check of the tests beside it.
async fn some_are_granted_twice(servers: Option<Servers>) {
    let Some(servers) = servers else { return };
    let seen = crash(servers, rounds().min(20)).await;
    assert!(seen.doubles > 0, "{seen:?}");
}

#[tokio::test]
#[ignore = "takes minutes: `make crashes`"]
async fn crashes_forget_no_grant_that_is_on_disk() {
    none_is_granted_twice(Servers::one(Protection::Disk).await).await;
}

#[tokio::test]
#[ignore = "takes minutes: `make crashes`"]
async fn crashes_forget_grants_whose_leases_end_in_the_quarantine() {
    none_is_granted_twice(Servers::one(Protection::Quarantine).await).await;
}

#[tokio::test]
#[ignore = "takes minutes: `make crashes`"]
async fn crashes_without_protection_grant_locks_twice() {
    some_are_granted_twice(Servers::one(Protection::Nothing).await).await;
}

#[tokio::test]
#[ignore = "takes minutes: `make crashes`"]
async fn promoted_standbys_know_every_grant_that_they_confirmed() {
    none_is_granted_twice(Servers::pair(Protection::Standby).await).await;
}

#[tokio::test]
#[ignore = "takes minutes: `make crashes`"]
async fn promoted_standbys_forget_grants_whose_leases_end_in_the_quarantine() {
    none_is_granted_twice(Servers::pair(Protection::Quarantine).await).await;
}

#[tokio::test]
#[ignore = "takes minutes: `make crashes`"]
async fn promoted_standbys_without_protection_grant_locks_twice() {
    some_are_granted_twice(Servers::pair(Protection::Nothing).await).await;
}
