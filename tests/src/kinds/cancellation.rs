//! Cancellation: who is dropped while it waits, or while it is granted the lock, leaves nothing.

use std::{
    thread,
    time::{Duration, Instant},
};

use lock_runtime::Acquire;

use super::Kind;
use crate::{
    LONG, Proxy, RedisServer, Store, TIME_LIMIT, connect, eventually, poll_once, release, settled,
    take_turn, within,
};

const ROUNDS: u32 = 120;

/// A grant lasts 3 s if nobody claims it: it is given back before.
const SOON: Duration = Duration::from_millis(2_500);

/// Whenever it is dropped.
pub async fn leaves_nothing_when_dropped(store: Store, kind: Kind) {
    let (holders, waiters) = (store.manager().await, store.manager().await);
    settled(&waiters).await;
    for round in 0..ROUNDS {
        // One of several is held, in turns.
        let names = kind.names("key");
        let name = &names[round as usize % names.len()];
        let guard = holders.lock(name).ttl(LONG).wait(TIME_LIMIT).acquire();
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
        match round % 5 {
            // Surely before it is granted, surely after, and somewhere between.
            3 => {
                drop(first);
                guard.release();
            }
            4 => {
                guard.release();
                let first = within(TIME_LIMIT, first).await;
                assert!(first.expect("its turn").is_held());
            }
            _ => {
                // A guard that is dropped is released by another thread.
                if round % 2 == 0 {
                    guard.release();
                } else {
                    drop(guard);
                }
                spin(Duration::from_micros(u64::from(round % 100) * 10));
                let _ = poll_once(&mut first).await;
                drop(first);
            }
        }
        if round % 6 == 0 {
            let second = within(TIME_LIMIT, second).await;
            assert!(second.expect("its turn").is_held());
        }
    }
    settled(&waiters).await;
    settled(&holders).await;
    eventually(TIME_LIMIT, async || store.traces().await.is_empty()).await;
    for name in kind.names("key") {
        take_turn(&holders, name).await;
    }
}

/// Calls and replies of the acquisition are late or lost.
pub async fn leaves_nothing_when_cut_off(kind: Kind) {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr());
    let (locks, others) = (connect(proxy.url()).await, connect(server.url()).await);
    let names = kind.names("key");
    let first = names.iter().min().expect("at least one");
    let request = || kind.request(&locks, "key").ttl(LONG).wait_forever();
    let nothing = async || server.keys("lock:{*").await.is_empty();
    for lost in [false, true] {
        // The grant of a free lock.
        settled(&locks).await;
        proxy.replies().hold();
        let mut acquire = request().acquire();
        assert!(poll_once(&mut acquire).await.is_pending());
        within(TIME_LIMIT, proxy.replies().held()).await;
        let held = async || server.owner(first).await.is_some();
        eventually(TIME_LIMIT, held).await;
        give_up(&proxy, acquire, lost).await;
        eventually(SOON, nothing).await;

        // That of one who waited.
        settled(&locks).await;
        let guard = others.lock(first.as_str()).ttl(LONG).acquire().await;
        let guard = guard.expect("the lock is free");
        let mut acquire = request().acquire();
        assert!(poll_once(&mut acquire).await.is_pending());
        server.queued(first, 1).await;
        proxy.replies().hold();
        release(guard).await;
        within(TIME_LIMIT, proxy.replies().held()).await;
        give_up(&proxy, acquire, lost).await;
        eventually(SOON, nothing).await;

        // A position in the queue.
        settled(&locks).await;
        let guard = others.lock(first.as_str()).ttl(LONG).acquire().await;
        let guard = guard.expect("the lock is free");
        let mut acquire = request().acquire();
        assert!(poll_once(&mut acquire).await.is_pending());
        server.queued(first, 1).await;
        give_up(&proxy, acquire, lost).await;
        server.queued(first, 0).await;
        release(guard).await;
        eventually(SOON, nothing).await;
    }
}

/// Drops an acquire; what is on its way then, and what it says of that, is lost or comes at last.
async fn give_up(proxy: &Proxy, acquire: Acquire, lost: bool) {
    if lost {
        proxy.requests().hold();
    }
    drop(acquire);
    if lost {
        within(TIME_LIMIT, proxy.requests().held()).await;
        proxy.cut().await;
        proxy.requests().pass();
    }
    proxy.replies().pass();
}

/// Lets time pass, more exactly than a timer.
fn spin(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        thread::yield_now();
    }
}
