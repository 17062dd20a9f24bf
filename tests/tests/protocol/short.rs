//! Leases and bodies that are short.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use lock_runtime::{LockError, LockGuard};
use tests::{Monitor, RedisServer, connect, granted, queue, release, take, unique, within};
use tokio::{task::JoinSet, time::sleep};

use crate::{FOUND, SECOND, SOON};

/// The smallest ttl.
const TTL: Duration = Duration::from_millis(100);

/// A lease, and for how long its holder took the lock for its own.
#[derive(Clone, Copy, Debug)]
struct Section {
    fence: u64,
    from: Instant,
    to: Instant,
}

impl Section {
    fn enter(guard: &LockGuard) -> Self {
        let from = Instant::now();
        let fence = guard.fencing_token().get();
        let to = from + guard.remaining();
        Self { fence, from, to }
    }

    /// Ends now, or at its deadline if that has passed.
    fn leave(mut self, guard: &LockGuard) -> Self {
        let now = Instant::now();
        self.to = now.min(self.to.max(now + guard.remaining()));
        self
    }
}

#[tokio::test]
async fn hundreds_of_hand_overs_of_the_shortest_leases() {
    const TASKS: usize = 6;
    const TURNS: usize = 100;
    let server = RedisServer::start().await;
    let managers = [connect(&server.url()).await, connect(&server.url()).await];
    let key = unique("short");
    let sections = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let (locks, key, sections) = (managers[task % 2].clone(), key.clone(), sections.clone());
        tasks.spawn(async move {
            let mut losses = 0;
            for _ in 0..TURNS {
                let acquire = locks.lock(&key).ttl(TTL).wait_forever().acquire();
                let guard = within(SOON, acquire).await.expect("a turn");
                let section = Section::enter(&guard);
                let outcome = guard.hold(sleep(Duration::from_millis(1))).await;
                let section = section.leave(&guard);
                sections.lock().expect("no panic").push(section);
                match outcome {
                    Ok(()) => guard.release(),
                    Err(LockError::Lost { fence, .. }) => {
                        assert_eq!(fence.get(), section.fence);
                        losses += 1;
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            losses
        });
    }
    let losses: usize = within(6 * SOON, tasks.join_all()).await.into_iter().sum();
    println!("{losses} losses in {} turns", TASKS * TURNS);
    assert!(losses < TASKS * TURNS / 2, "{losses} losses");

    let mut sections = sections.lock().expect("no panic").clone();
    assert_eq!(sections.len(), TASKS * TURNS);
    sections.sort_by_key(|section| section.fence);
    for pair in sections.windows(2) {
        assert!(pair[0].fence < pair[1].fence, "the same number twice");
        assert!(pair[0].to <= pair[1].from, "two at once: {pair:?}");
    }
}

/// How many renewals there were since the last time.
async fn renewals(monitor: &mut Monitor, server: &RedisServer) -> usize {
    let commands = monitor.commands(server).await;
    // The one script whose third and last argument is a kind.
    let renewals = commands
        .iter()
        .filter(|it| it[0] == "evalsha" && it.len() == 3 + 2 + 3 && it[7] == "x");
    renewals.count()
}

#[tokio::test]
async fn a_short_body_is_not_renewed() {
    let server = RedisServer::start().await;
    let (locks, others) = (connect(&server.url()).await, connect(&server.url()).await);
    let mut monitor = server.monitor().await;
    let key = unique("body");
    for _ in 0..3 {
        let guard = take(&locks, &key, 10 * SECOND).await;
        let waiter = queue(&server, &others, &key, 10 * SECOND, 1).await;
        guard.hold(sleep(SECOND * 2 / 5)).await.expect("held");
        release(guard).await;
        // It was granted by a push.
        let guard = granted(FOUND, waiter).await;
        guard.hold(sleep(SECOND * 2 / 5)).await.expect("held");
        release(guard).await;
    }
    assert_eq!(renewals(&mut monitor, &server).await, 0);

    let guard = take(&locks, &key, SECOND).await;
    guard.hold(sleep(SECOND * 2 / 5)).await.expect("held");
    release(guard).await;
    let count = renewals(&mut monitor, &server).await;
    assert!((1..=2).contains(&count), "{count} after a third of the ttl");
}
