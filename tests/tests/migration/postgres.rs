//! Locks on PostgreSQL beside what services have locked with there before. The statements are those of
//! `docs/migrating.md`.

use std::{
    fs,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
};

use lock_runtime::LockManager;
use tests::{Home as _, LONG, PostgresHome, PostgresPeer, TIME_LIMIT, connect, release, within};
use tokio::{join, task::yield_now};

/// How often each of the clients takes its turn.
const TURNS: usize = 20;

/// The SQL in a section of the document, with the schema of the test in place of the usual one.
fn documented(section: &str, schema: &str) -> Vec<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/migrating.md");
    let text = fs::read_to_string(path).unwrap();
    let (_, section) = text.split_once(&format!("\n## {section}\n")).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let blocks = section.split("\n```sql\n").skip(1);
    blocks
        .map(|block| block.split("\n```").next().unwrap())
        .map(|sql| sql.replace("lock_runtime.", &format!("{schema}.")))
        .collect()
}

/// A schema with the functions of locks, and with tables of the test.
struct Scene {
    home: PostgresHome,
    locks: LockManager,
}

impl Scene {
    async fn new(tables: &str) -> Option<Self> {
        let home = PostgresHome::start().await?;
        let locks = connect(&*home.url()).await;
        let scene = Self { home, locks };
        scene.peer().await.rows(tables).await;
        Some(scene)
    }

    async fn peer(&self) -> PostgresPeer {
        let mut peer = self.home.peer().await;
        let set = format!("SET search_path = {}", self.home.schema());
        peer.rows(&set).await;
        peer
    }
}

/// Takes one lamp by a transaction of the document: computes what to write from what it has read.
async fn take_lamp(peer: &mut PostgresPeer, transaction: &str, fence: &str) {
    let mut count = 0;
    for statement in transaction.split_inclusive(';') {
        if statement.contains("SELECT count") {
            count = peer.value(statement).await.parse().unwrap();
            yield_now().await;
            continue;
        }
        let left = format!("count = {}", count - 1);
        let statement = statement.replace("count = 49", &left);
        peer.rows(&statement.replace("1795370634480661", fence))
            .await;
    }
}

// Section: migrating.md#from-a-databases-advisory-locks
#[tokio::test]
async fn advisory_locks_and_ours_exclude_each_other() {
    let tables =
        "CREATE TABLE stock (item text, count int); INSERT INTO stock VALUES ('lamp', 100)";
    let Some(scene) = Scene::new(tables).await else {
        return;
    };
    let sections = documented("From a database's advisory locks", scene.home.schema());
    let [old, both, new] = &sections[..] else {
        panic!("{sections:?}");
    };
    let theirs = async || {
        let mut peer = scene.peer().await;
        for _ in 0..TURNS {
            take_lamp(&mut peer, old, "").await;
        }
    };
    let ours = async |transaction: &str| {
        let mut peer = scene.peer().await;
        for _ in 0..TURNS {
            let lock = scene.locks.lock("stock:lamp").ttl(LONG).wait_forever();
            let guard = lock.acquire().await.unwrap();
            let fence = guard.fencing_token().to_string();
            take_lamp(&mut peer, transaction, &fence).await;
            release(guard).await;
        }
    };
    let left = async || scene.peer().await.value("SELECT count FROM stock").await;
    let all = async { join!(theirs(), theirs(), ours(both)) };
    within(3 * TIME_LIMIT, all).await;
    assert_eq!(left().await, "40");
    // Some have got rid of the advisory lock, and some have not yet.
    let all = async { join!(ours(both), ours(new)) };
    within(3 * TIME_LIMIT, all).await;
    assert_eq!(left().await, "0");
}

/// How ShedLock takes a row with the time of the database, and gives it back.
const SHEDLOCK: [&str; 2] = [
    "INSERT INTO shedlock (name, lock_until, locked_at, locked_by)
     VALUES ('invoices', timezone('utc', current_timestamp) + make_interval(secs => 60),
         timezone('utc', current_timestamp), 'theirs')
     ON CONFLICT (name) DO UPDATE SET lock_until = timezone('utc', current_timestamp) + make_interval(secs => 60),
         locked_at = timezone('utc', current_timestamp), locked_by = 'theirs'
     WHERE shedlock.lock_until <= timezone('utc', current_timestamp)
     RETURNING locked_by",
    "UPDATE shedlock SET lock_until = timezone('utc', current_timestamp)
     WHERE name = 'invoices' AND locked_by = 'theirs'",
];

// Section: migrating.md#from-shedlocks-table
#[tokio::test]
async fn rows_of_shedlock_and_ours_exclude_each_other() {
    let tables = "CREATE TABLE shedlock (name varchar(64) PRIMARY KEY, lock_until timestamp NOT NULL, \
                  locked_at timestamp NOT NULL, locked_by varchar(255) NOT NULL)";
    let Some(scene) = Scene::new(tables).await else {
        return;
    };
    let sections = documented("From ShedLock's table", scene.home.schema());
    let [take, extend, give_back] = &sections[..] else {
        panic!("{sections:?}");
    };
    let (running, runs) = (AtomicBool::new(false), AtomicUsize::new(0));
    let job = async |peer: &mut PostgresPeer| {
        assert!(!running.swap(true, Ordering::Relaxed), "two run the job");
        // Long enough that others look at the row meanwhile.
        for _ in 0..4 {
            peer.rows("SELECT").await;
        }
        runs.fetch_add(1, Ordering::Relaxed);
    };
    let theirs = async || {
        let (mut peer, [take, give_back]) = (scene.peer().await, SHEDLOCK);
        let mut turns = 0;
        while turns < TURNS {
            if !peer.rows(take).await.is_empty() {
                job(&mut peer).await;
                running.store(false, Ordering::Relaxed);
                peer.rows(give_back).await;
                turns += 1;
            }
        }
    };
    let ours = async || {
        let mut peer = scene.peer().await;
        let mut turns = 0;
        while turns < TURNS {
            let lock = scene.locks.lock("invoices").ttl(LONG).wait_forever();
            let guard = lock.acquire().await.unwrap();
            let fence = guard.fencing_token().to_string();
            let own = |sql: &str| sql.replace("1795370634480661", &fence);
            if !peer.rows(&own(take)).await.is_empty() {
                job(&mut peer).await;
                assert_eq!(peer.rows(&own(extend)).await.len(), 1);
                running.store(false, Ordering::Relaxed);
                assert_eq!(peer.rows(&own(give_back)).await.len(), 1);
                turns += 1;
            }
            release(guard).await;
        }
    };
    let all = async { join!(theirs(), ours(), ours()) };
    within(3 * TIME_LIMIT, all).await;
    assert_eq!(runs.into_inner(), 3 * TURNS);
}
