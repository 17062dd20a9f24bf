//! Cancellation: who is dropped while it waits, or while it is granted the lock, leaves nothing.

use std::{
    thread,
    time::{Duration, Instant},
};

use super::Kind;
use crate::{
    eventually, within,
    world::{LONG, PATIENCE, World, poll_once, settled, take},
};

const ROUNDS: u32 = 120;

/// Whenever it is dropped.
pub async fn leaves_nothing_when_dropped(world: World, kind: Kind) {
    let (holders, waiters) = (world.manager().await, world.manager().await);
    settled(&waiters).await;
    let mut granted = 0;
    for round in 0..ROUNDS {
        // One of several is held, in turns.
        let names = kind.names("key");
        let name = &names[round as usize % names.len()];
        let guard = holders.lock(name).ttl(LONG).wait(PATIENCE).acquire();
        let guard = guard.await.expect("whoever was dropped is out of the way");
        let request = || kind.request(&waiters, "key").ttl(LONG).wait_forever();
        let mut first = request().acquire();
        assert!(poll_once(&mut first).await.is_pending());
        // Some are dropped beside one that goes on, and takes the lock.
        let mut second = request().acquire();
        if round % 3 == 0 {
            assert!(poll_once(&mut second).await.is_pending());
        }
        if round % 2 == 0 {
            settled(&waiters).await;
        }
        guard.release();
        spin(Duration::from_micros(u64::from(round % 100) * 10));
        granted += u32::from(poll_once(&mut first).await.is_ready());
        drop(first);
        if round % 6 == 0 {
            let second = within(PATIENCE, second).await;
            assert!(second.expect("its turn").is_held());
        }
    }
    assert!((1..ROUNDS).contains(&granted), "always the same: {granted}");
    settled(&waiters).await;
    settled(&holders).await;
    eventually(PATIENCE, async || world.traces().await.is_empty()).await;
    for name in kind.names("key") {
        take(&holders, name).await;
    }
}

/// Lets time pass, more exactly than a timer.
fn spin(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        thread::yield_now();
    }
}
