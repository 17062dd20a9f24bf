//! Leases and bodies that are short.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use lock_runtime::{Clock, LockConfig, LockError, LockGuard, LockManager};
use tests::{
    Monitor, RedisServer, connect, granted, queue, release, settled, take, unique, within,
};
use tokio::{task::JoinSet, time::sleep};

use crate::{FOUND, LONG, SECOND, SOON};

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

// Section: guarantees.md#one-holder-at-a-time
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
                    Err(LockError::Lost {
                        fencing_token: fence,
                        ..
                    }) => {
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

/// How many renewals there were since the last time, alone or together with other calls.
async fn renewals(monitor: &mut Monitor, server: &RedisServer) -> usize {
    let commands = monitor.commands(server).await;
    let count = |words: &Vec<String>| {
        // The one script whose third argument is a kind.
        let alone = words[0] == "evalsha" && words.get(7).is_some_and(|it| it == "x");
        let together = words.iter().filter(|word| word.starts_with('='));
        usize::from(alone) + together.count()
    };
    commands.iter().map(count).sum()
}

#[tokio::test]
async fn a_short_body_is_not_renewed() {
    let server = RedisServer::start().await;
    // The time of the machine, which may be slow, plays no part.
    let clock = Clock::manual();
    let config = LockConfig::new(server.url()).expect("a URL");
    let config = config.clock(clock.clone());
    let (locks, others) = (connect(config.clone()).await, connect(config).await);
    let mut monitor = server.monitor().await;
    let key = unique("body");
    let body = async |locks: &LockManager, time| {
        clock.advance(time);
        // What was due is sent before this.
        settled(locks).await;
    };
    for _ in 0..3 {
        let guard = take(&locks, &key, LONG).await;
        let waiter = queue(&server, &others, &key, LONG, 1).await;
        guard
            .hold(body(&locks, SECOND * 2 / 5))
            .await
            .expect("held");
        release(guard).await;
        // It was granted by a push.
        let guard = granted(FOUND, waiter).await;
        guard
            .hold(body(&others, SECOND * 2 / 5))
            .await
            .expect("held");
        release(guard).await;
    }
    assert_eq!(renewals(&mut monitor, &server).await, 0);

    let guard = take(&locks, &key, LONG).await;
    guard.hold(body(&locks, LONG * 2 / 5)).await.expect("held");
    assert_eq!(
        renewals(&mut monitor, &server).await,
        1,
        "after a third of the ttl"
    );
    release(guard).await;
}
