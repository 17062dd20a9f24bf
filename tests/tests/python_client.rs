//! Promise: `docs/protocol.md` is enough to write a client. One in Python was, and shares locks with ours.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use std::{
    cell::Cell,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use redis::Value;
use tests::{
    RedisServer, Register, Worker, connect, eventually, granted, leaves_nothing, queue, release,
    take, within,
};
use tokio::task::JoinSet;

const TIME_LIMIT: Duration = Duration::from_secs(60);

/// No lease ends by itself while a test runs.
const LEASE: Duration = Duration::from_secs(60);

const KEY: &str = "shared";

/// Returns from the test where there is no Python.
macro_rules! python_or_return {
    ($test:literal) => {
        if !Worker::has_python(concat!("python_client: ", $test)) {
            return;
        }
    };
}

/// A client that takes the lock and holds it until the order to release it.
async fn holder(server: &RedisServer, ttl: u32, wait: u32) -> Worker {
    let (url, ttl, wait) = (server.url(), ttl.to_string(), wait.to_string());
    Worker::python(["hold", &url, KEY, &ttl, &wait]).await
}

async fn fence(worker: &mut Worker) -> u64 {
    let line = worker.line().await;
    let fence = line.strip_prefix("granted ");
    fence.unwrap_or_else(|| panic!("{line}")).parse().unwrap()
}

/// Enters sections by `tasks` tasks of one connection, which gets the lock in chains, until `stop`; how many they were.
async fn ours(
    url: &str,
    register: &Arc<Register>,
    tasks: usize,
    stop: &Arc<AtomicBool>,
) -> JoinSet<u64> {
    let (mut running, locks) = (JoinSet::new(), connect(url).await);
    for _ in 0..tasks {
        let (locks, register, stop) = (locks.clone(), register.clone(), stop.clone());
        running.spawn(async move {
            let mut entered = 0;
            while !stop.load(Ordering::Relaxed) {
                let guard = take(&locks, KEY, LEASE).await;
                let fence = guard.fencing_token().get();
                register.enter(KEY, fence).await.leave().await;
                guard.release();
                entered += 1;
            }
            entered
        });
    }
    running
}

// Section: guarantees.md#one-holder-at-a-time, guarantees.md#a-lock-passes-through-a-process-without-the-server, protocol.md#chains
#[tokio::test]
async fn both_take_turns_and_never_overlap() {
    const EACH: usize = 3;
    const SECTIONS: u64 = 1_500;
    python_or_return!("both_take_turns_and_never_overlap");
    let (server, register) = (RedisServer::start().await, Register::start().await);
    let register = Arc::new(register);
    let mut theirs = Vec::new();
    // The last one waits briefly: it gives up when it is about to be granted the lock.
    for wait in ["60000", "60000", "60000", "5"] {
        let args = ["load", &server.url(), register.url(), KEY, wait];
        let mut worker = Worker::python(args).await;
        assert_eq!(worker.line().await, "ready");
        theirs.push(worker);
    }
    let stop = Arc::new(AtomicBool::new(false));
    let ours = ours(&server.url(), &register, EACH, &stop).await;
    for worker in &mut theirs {
        worker.send("go").await;
    }

    let entered = async |count| {
        eventually(TIME_LIMIT, async || register.sections().await >= count).await;
    };
    entered(SECTIONS / 2).await;
    // Answers and grants are lost on both sides, and everybody connects again.
    server.kill_all_clients().await;
    entered(SECTIONS).await;
    stop.store(true, Ordering::Relaxed);
    let mut counts = Vec::new();
    for worker in &mut theirs {
        worker.send("stop").await;
    }
    for worker in &mut theirs {
        let line = worker.line().await;
        let numbers: Vec<u64> = line.split(' ').map(|it| it.parse().unwrap()).collect();
        counts.push((numbers[0], numbers[1]));
    }
    let ours: u64 = within(TIME_LIMIT, ours.join_all()).await.into_iter().sum();
    let [patient @ .., (lucky, contended)] = &counts[..] else {
        unreachable!("there are four");
    };
    let theirs: u64 = patient.iter().map(|it| it.0).sum();
    let overlaps = register.violations().await;
    println!(
        "entries: {ours} of ours, {theirs} of Python's, {lucky} of one that waits briefly and gave \
         up {contended} times; {} overlaps",
        overlaps.len()
    );

    assert_eq!(overlaps, [""; 0], "overlaps, and fences that did not grow");
    assert!(
        patient.iter().all(|it| it.1 == 0),
        "a wait ended: {counts:?}"
    );
    let all = ours + theirs + lucky;
    assert_eq!(register.sections().await, all);
    assert!(ours >= all / 5 && theirs >= all / 5, "who starves?");
    leaves_nothing(&server, KEY, TIME_LIMIT).await;
}

// Section: guarantees.md#first-come-first-served
#[tokio::test]
async fn they_wait_in_one_queue() {
    python_or_return!("they_wait_in_one_queue");
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let first = take(&locks, KEY, LEASE).await;
    let mut second = holder(&server, 60_000, 60_000).await;
    server.queued(KEY, 1).await;
    let third = queue(&server, &locks, KEY, LEASE, 2).await;
    let mut fourth = holder(&server, 60_000, 60_000).await;
    server.queued(KEY, 3).await;

    let mut fences = vec![first.fencing_token().get()];
    release(first).await;
    fences.push(fence(&mut second).await);
    second.send("release").await;
    assert_eq!(second.line().await, "released true");
    let third = granted(TIME_LIMIT, third).await;
    fences.push(third.fencing_token().get());
    release(third).await;
    fences.push(fence(&mut fourth).await);
    fourth.send("release").await;
    assert_eq!(fourth.line().await, "released true");
    assert!(fences.is_sorted_by(|a, b| a < b), "{fences:?}");
    leaves_nothing(&server, KEY, TIME_LIMIT).await;
}

// Section: guarantees.md#nothing-is-left-behind
#[tokio::test]
async fn who_gives_up_leaves_nothing_behind() {
    python_or_return!("who_gives_up_leaves_nothing_behind");
    let server = RedisServer::start().await;
    let guard = take(&connect(server.url()).await, KEY, LEASE).await;
    for wait in [0, 300] {
        let mut waiter = holder(&server, 60_000, wait).await;
        assert_eq!(waiter.line().await, "contended");
        assert_eq!(server.waiting(KEY).await, 0, "it is still in the queue");
    }
    release(guard).await;
    leaves_nothing(&server, KEY, TIME_LIMIT).await;
}

// Section: guarantees.md#the-lock-goes-on
#[tokio::test]
async fn the_lock_of_one_that_was_killed_goes_to_the_other_after_its_ttl() {
    const TTL: u32 = 2_000;
    python_or_return!("the_lock_of_one_that_was_killed_goes_to_the_other_after_its_ttl");
    let server = RedisServer::start().await;
    let mut theirs = holder(&server, TTL, 60_000).await;
    let first = fence(&mut theirs).await;
    assert_eq!(server.without_ttl("lock:{*").await, [""; 0]);
    let waiter = queue(&server, &connect(server.url()).await, KEY, LEASE, 1).await;
    theirs.kill().await;
    let guard = granted(TIME_LIMIT, waiter).await;
    let second = guard.fencing_token().get();
    assert!(second > first);
    release(guard).await;

    let args = ["holder", &server.url(), "exclusive", KEY, &TTL.to_string()];
    let mut ours = Worker::spawn(env!("CARGO_BIN_EXE_worker"), args).await;
    let third = ours.fence().await;
    assert!(third > second);
    let mut theirs = holder(&server, TTL, 60_000).await;
    server.queued(KEY, 1).await;
    ours.kill().await;
    assert!(fence(&mut theirs).await > third);
}

/// Returns when the lease has been extended so often.
async fn renewals(server: &RedisServer, count: u32) {
    let (last, seen) = (Cell::new(i64::MAX), Cell::new(0));
    eventually(TIME_LIMIT, async || {
        let left = server.cmd(&["PTTL", &RedisServer::owner_key(KEY)]).await;
        let left = redis::from_redis_value(left).unwrap();
        if left > last.replace(left) {
            seen.set(seen.get() + 1);
        }
        seen.get() >= count
    })
    .await;
}

#[tokio::test]
async fn its_lease_is_renewed_and_can_be_revoked() {
    const TTL: u32 = 4_000;
    python_or_return!("its_lease_is_renewed_and_can_be_revoked");
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let mut theirs = holder(&server, TTL, 60_000).await;
    let fence = fence(&mut theirs).await;
    let waiter = queue(&server, &locks, KEY, LEASE, 1).await;
    renewals(&server, 2).await;
    assert!(!waiter.is_finished());

    let reported = async || {
        let status = locks.status(KEY).await.unwrap();
        let [holder] = &status.holders[..] else {
            panic!("{status:?}");
        };
        assert_eq!(holder.process, Some(theirs.pid()));
        holder.fencing_token.is_some_and(|it| it.get() == fence)
    };
    eventually(TIME_LIMIT, reported).await;
    assert_eq!(locks.force_release(KEY).await.unwrap(), 1);
    assert_eq!(theirs.line().await, "lost");
    release(granted(TIME_LIMIT, waiter).await).await;
    leaves_nothing(&server, KEY, TIME_LIMIT).await;
}

#[tokio::test]
async fn its_scripts_are_joined_as_ours_are() {
    python_or_return!("its_scripts_are_joined_as_ours_are");
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    locks.status(KEY).await.unwrap();
    locks.force_release(KEY).await.unwrap();
    let mut theirs = Worker::python(["hashes"]).await;
    for _ in 0..8 {
        let line = theirs.line().await;
        let (script, hash) = line.split_once(' ').unwrap();
        // Ours has loaded or called it; nobody else was there.
        let known = server.cmd(&["SCRIPT", "EXISTS", hash]).await;
        assert_eq!(known, Value::Array(vec![Value::Int(1)]), "{script}");
    }
}
