//! A process that is stopped past its lease does not go on with the body when it is resumed.

use std::{env, time::Duration};

use tests::{RedisServer, Worker, boottime, connect, unique, within};
use tokio::task::JoinSet;

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
