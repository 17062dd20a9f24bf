//! Keys that are used again, and deletions that come late.
//!
//! Section: etcd.md#what-it-promises

use std::{collections::BTreeSet, time::Duration};

use lock_runtime::{LockGuard, LockManager};
use tests::{
    EtcdServer, LONG, Proxy, TIME_LIMIT, connect, eventually, poll_once, queued, release, take,
    take_turn, within,
};
use tokio::{task::JoinSet, time::sleep};

#[tokio::test]
async fn a_lock_that_is_taken_again_and_again_has_one_key() {
    let Some(server) = EtcdServer::start("keys that are used again").await else {
        return;
    };
    let locks = connect(&*server.url()).await;
    let mut keys = BTreeSet::new();
    let mut fence = None;
    for _ in 0..50 {
        let guard = take(&locks, "key", LONG).await;
        keys.extend(server.keys("lock/key/").await);
        let before = fence.replace(guard.fencing_token());
        assert!(before < fence);
        release(guard).await;
    }
    assert_eq!(keys.len(), 1, "{keys:?}");
    // One for each of those that are in the queue together.
    for _ in 0..3 {
        let guard = take(&locks, "key", LONG).await;
        let waiter = queued(&locks, locks.lock("key").ttl(LONG).wait_forever()).await;
        keys.extend(server.keys("lock/key/").await);
        release(guard).await;
        release(within(TIME_LIMIT, waiter).await.unwrap()).await;
    }
    assert_eq!(keys.len(), 2, "{keys:?}");
}

#[tokio::test]
async fn a_holder_that_is_revoked_and_takes_its_key_again_is_followed_by_who_waited() {
    let Some(server) = EtcdServer::start("a key that is used again at once").await else {
        return;
    };
    let (locks, others) = (connect(&*server.url()).await, connect(&*server.url()).await);
    for _ in 0..5 {
        let guard = take(&locks, "key", LONG).await;
        let waiter = queued(&others, others.lock("key").ttl(LONG).wait_forever()).await;
        assert_eq!(others.force_release("key").await.unwrap(), 1);
        within(TIME_LIMIT, guard.lost()).await;
        let again = locks.lock("key").ttl(LONG).wait_forever().acquire();
        let mut again = Box::pin(again);
        assert!(poll_once(&mut again).await.is_pending());
        let next = within(TIME_LIMIT, waiter).await.unwrap();
        eventually(TIME_LIMIT, async || {
            others.status("key").await.unwrap().waiting == 1
        })
        .await;
        assert!(poll_once(&mut again).await.is_pending() && next.is_held());
        release(next).await;
        release(within(TIME_LIMIT, again).await.unwrap()).await;
    }
}

/// Releases all at once.
async fn release_all(guards: Vec<LockGuard>) {
    let mut releases: JoinSet<()> = guards.into_iter().map(release).collect();
    while let Some(released) = within(TIME_LIMIT, releases.join_next()).await {
        released.unwrap();
    }
}

/// Takes so many locks.
async fn take_all(locks: &LockManager, count: usize) -> Vec<LockGuard> {
    let mut guards = Vec::new();
    for number in 0..count {
        guards.push(take(locks, &format!("key:{number}"), LONG).await);
    }
    guards
}

#[tokio::test]
async fn a_deletion_that_arrives_after_its_connection_was_given_up_ends_no_later_lock() {
    let Some(server) = EtcdServer::start("late deletions").await else {
        return;
    };
    let (slow, quick) = (Proxy::start(server.addr()), Proxy::start(server.addr()));
    let locks = connect(format!("etcd://{},{}", slow.addr(), quick.addr())).await;
    take_turn(&locks, "warm").await;
    // By itself, and in one transaction.
    for count in [1, 8] {
        // Whichever of them is asked.
        for slow in [&slow, &quick] {
            let guards = take_all(&locks, count).await;
            slow.requests().hold();
            release_all(guards).await;
            let guards = take_all(&locks, count).await;
            slow.requests().pass();
            sleep(Duration::from_millis(300)).await;
            assert_eq!(server.keys("lock/key:").await.len(), count);
            assert!(guards.iter().all(LockGuard::is_held));
            release_all(guards).await;
            eventually(TIME_LIMIT, async || locks.health().await.connected).await;
        }
    }
}
