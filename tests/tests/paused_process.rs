//! A process that is stopped past its lease does not go on with the body when it is resumed.

use std::{env, time::Duration};

use tests::{
    LONG, Proxy, RedisServer, TIME_LIMIT, Worker, boottime, connect, eventually, release, take,
    unique, within,
};
use tokio::{task::JoinSet, time::sleep};

const TTL: Duration = Duration::from_millis(300);
const SOON: Duration = Duration::from_secs(10);

/// So many processes are stopped so often each.
const PROCESSES: u32 = 8;
const PAUSES: u32 = 25;

/// Stops a process that holds a lock at random points of its lease; how many polls of its body followed a pause.
async fn pause_one(url: String, mut random: fastrand::Rng) -> usize {
    let mut late = 0;
    let key = unique("paused");
    let locks = connect(&url).await;
    let ttl = TTL.as_millis().to_string();
    let args = ["paused-process", &url, &key, &ttl];
    let mut worker = Worker::spawn(env!("CARGO_BIN_EXE_worker"), args).await;

    for _ in 0..PAUSES {
        let fence = worker.take().await;
        tokio::time::sleep(TTL.mul_f64(random.f64())).await;

        worker.pause();
        let theirs = locks.lock(&key).wait_forever().acquire();
        let theirs = within(SOON, theirs).await.expect("the lock has expired");
        assert!(theirs.fencing_token().get() > fence);

        let resumed = boottime().as_nanos();
        worker.resume();
        let polls = worker.polls_until_lost(fence).await;
        late += polls.iter().filter(|poll| **poll >= resumed).count();
        assert!(theirs.is_held());
        let released = within(SOON, theirs.release_confirmed()).await;
        assert!(released.expect("an answer"), "a foreign key was deleted");
    }
    late
}

// Section: guarantees.md#no-poll-of-the-body-starts-after-its-deadline, guarantees.md#when-a-majority-decides
#[tokio::test]
async fn no_poll_follows_the_pause() {
    let server = RedisServer::start().await;
    let seed = env::var("LOCK_SEED").map_or_else(
        |_| fastrand::u64(..),
        |seed| seed.parse().expect("a number"),
    );
    println!("LOCK_SEED={seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut processes = JoinSet::new();
    for _ in 0..PROCESSES {
        processes.spawn(pause_one(server.url(), random.fork()));
    }
    // A pause may fall between the look at the clock and the body: such a poll began before it.
    let late: usize = processes.join_all().await.into_iter().sum();
    assert!(late <= 1, "the body ran on after {late} pauses");
}

/// How long an acquisition goes on by default while the server cannot be asked.
const UNAVAILABLE_WAIT: Duration = Duration::from_secs(2);

// Section: guarantees.md#the-body-does-not-begin-without-the-lock
/// The server was away for a moment; in the rest of the time nobody was there to ask it.
#[tokio::test]
async fn the_time_in_which_a_process_is_stopped_is_no_outage() {
    let server = RedisServer::start().await;
    let mut proxy = Proxy::start(server.addr());
    let others = connect(server.url()).await;
    let held = take(&others, "key", LONG).await;
    let mut worker = Worker::locker(env!("CARGO_BIN_EXE_worker"), &proxy.url()).await;
    worker.send("acquire it key 60000").await;
    let waits = async || others.status("key").await.expect("an answer").waiting == 1;
    eventually(TIME_LIMIT, waits).await;
    proxy.refuse().await;
    proxy.cut().await;
    // The process knows of the outage when this is refused.
    worker.send("acquire other free 0").await;
    let line = worker.line().await;
    assert!(line.starts_with("other refused "), "{line}");
    worker.pause();
    sleep(UNAVAILABLE_WAIT).await;
    proxy.admit();
    worker.resume();
    worker.send("acquire another free 60000").await;
    let line = worker.line().await;
    assert!(line.starts_with("another granted "), "{line}");
    release(held).await;
    let line = worker.line().await;
    assert!(line.starts_with("it granted "), "{line}");
}

// Section: guarantees.md#first-come-first-served
/// Several tasks of a process wait for one lock while the process is stopped, and the lock is handed to the first.
#[tokio::test]
async fn all_waiters_of_a_process_that_was_stopped_get_their_turns_in_order() {
    let server = RedisServer::start().await;
    let others = connect(server.url()).await;
    let held = take(&others, "key", LONG).await;
    let mut worker = Worker::locker(env!("CARGO_BIN_EXE_worker"), &server.url()).await;
    let waiting = async |count| {
        let waits = async || others.status("key").await.expect("an answer").waiting == count;
        eventually(TIME_LIMIT, waits).await;
    };
    let names = ["a", "b", "c"];
    for (count, name) in (1..).zip(names) {
        worker.send(&format!("acquire {name} key 60000")).await;
        waiting(count).await;
    }
    let theirs = tokio::spawn(others.lock("key").ttl(LONG).wait(TIME_LIMIT).acquire());
    waiting(4).await;
    worker.pause();
    release(held).await;
    let theirs = within(TIME_LIMIT, theirs)
        .await
        .expect("no panic")
        .expect("its turn");
    let mut fence = theirs.fencing_token().get();
    worker.resume();
    waiting(3).await;
    release(theirs).await;
    let mut turns = Vec::new();
    let mut released = 0;
    while released < names.len() {
        let line = worker.line().await;
        let words: Vec<_> = line.split(' ').collect();
        match words[..] {
            [name, "granted", number] => {
                let next = number.parse().expect("a number");
                assert!(next > fence, "{next} after {fence}");
                fence = next;
                turns.push(name.to_owned());
                worker.send(&format!("release {name}")).await;
            }
            [_, "released", "true"] => released += 1,
            _ => panic!("{line}"),
        }
    }
    assert_eq!(turns, names);
}
