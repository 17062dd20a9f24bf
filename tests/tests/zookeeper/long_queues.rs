//! In a long queue of one manager, joining and entering cost what they do in a short one.

use std::time::Duration;

use tests::{LONG, Proxy, TIME_LIMIT, eventually, release, within};
use tokio::task::JoinSet;

use crate::{manager, server};

const WAITERS: u64 = 500;
const TURNS: u64 = 20;

/// Many times less than the names of all who wait.
const FEW_BYTES: u64 = 3_000;

// Section: zookeeper.md#how-a-lock-is-taken
#[tokio::test]
async fn a_manager_does_not_read_its_queue_for_each_waiter_that_joins_or_enters() {
    let Some(server) = server().await else { return };
    let proxy = Proxy::start(server.addr());
    let locks = manager(&format!("zookeeper://{}/long", proxy.addr()), LONG).await;
    let guard = locks.lock("key").acquire().await.unwrap();
    let start = proxy.replies().bytes();
    let waiters = (0..WAITERS).map(|_| locks.lock("key").wait_forever().acquire());
    let mut waiters: JoinSet<_> = waiters.collect();
    let mut peer = server.peer().await;
    while (peer.children("/long/lock/key").await.len() as u64) <= WAITERS {
        assert!(waiters.try_join_next().is_none(), "the lock is held");
        tokio::task::yield_now().await;
    }
    let joined = proxy.replies().bytes() - start;
    assert!(joined < WAITERS * FEW_BYTES, "{joined} bytes to join");

    let mut fence = guard.fencing_token();
    release(guard).await;
    let start = proxy.replies().bytes();
    for _ in 0..TURNS {
        let next = within(TIME_LIMIT, waiters.join_next()).await.unwrap();
        let next = next.unwrap().unwrap();
        assert!(next.fencing_token() > fence, "in their order");
        fence = next.fencing_token();
        release(next).await;
    }
    let handed = proxy.replies().bytes() - start;
    assert!(
        handed < TURNS * 2 * FEW_BYTES,
        "{handed} bytes to hand over"
    );
    drop(waiters);
    eventually(TIME_LIMIT, async || {
        let queue = server.peer().await.children("/long/lock/key").await;
        queue.is_empty()
    })
    .await;
}

const NEW_LOCKS: usize = 15_000;
const SHORT_SESSION: Duration = Duration::from_secs(4);

// Section: zookeeper.md#the-session-is-the-lease
#[tokio::test]
async fn a_burst_of_new_locks_costs_no_lock_that_is_held() {
    let Some(server) = server().await else { return };
    let url = server.url("burst");
    let locks = manager(&url, SHORT_SESSION).await;
    let held = locks.lock("held").acquire().await.unwrap();
    let burst = (0..NEW_LOCKS).map(|number| {
        let acquire = locks.lock(format!("new-{number}")).wait_forever().acquire();
        async move { release(acquire.await.unwrap()).await }
    });
    let mut burst: JoinSet<_> = burst.collect();
    while burst.join_next().await.is_some() {}
    assert!(held.is_held());
    release(held).await;
}
