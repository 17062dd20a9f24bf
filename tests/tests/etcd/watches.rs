//! What a waiter hears of, and what it cannot hear of.
//!
//! Section: etcd.md#what-it-promises

use std::collections::VecDeque;

use tokio::task::JoinSet;

use tests::{
    EtcdCluster, EtcdServer, Gateway, LONG, Proxy, TIME_LIMIT, connect, eventually, queued,
    release, take, within,
};

use crate::patient;

#[tokio::test]
async fn a_waiter_whose_events_were_compacted_looks_for_itself() {
    let Some(server) = EtcdServer::start("compaction").await else {
        return;
    };
    let mut proxy = Proxy::start(server.addr());
    let (locks, others) = (
        connect(&*server.url()).await,
        connect(format!("etcd://{}", proxy.addr())).await,
    );
    let guard = take(&locks, "key", LONG).await;
    let waiter = queued(&others, others.lock("key").ttl(LONG).wait_forever()).await;
    let waiter = tokio::spawn(waiter);
    for _ in 0..2 {
        proxy.refuse().await;
        proxy.cut().await;
        for number in 0..5 {
            server.put("else", &number.to_string()).await;
        }
        server.compact().await;
        proxy.admit();
        eventually(TIME_LIMIT, async || others.health().await.connected).await;
    }
    proxy.refuse().await;
    proxy.cut().await;
    release(guard).await;
    server.compact().await;
    proxy.admit();
    let guard = within(TIME_LIMIT, waiter).await.unwrap();
    release(guard.unwrap()).await;
}

#[tokio::test]
async fn a_turn_whose_revision_was_compacted_itself_is_taken() {
    let Some(server) = EtcdServer::start("compaction of a turn").await else {
        return;
    };
    let mut proxy = Proxy::start(server.addr());
    let (locks, others) = (
        connect(&*server.url()).await,
        connect(format!("etcd://{}", proxy.addr())).await,
    );
    let guard = take(&locks, "key", LONG).await;
    // Nothing is written between its entry and the release.
    let waiter = tokio::spawn(others.lock("key").ttl(LONG).wait_forever().acquire());
    eventually(TIME_LIMIT, async || {
        locks.status("key").await.unwrap().waiting == 1
    })
    .await;
    proxy.refuse().await;
    proxy.cut().await;
    release(guard).await;
    server.compact().await;
    proxy.admit();
    let guard = within(TIME_LIMIT, waiter).await.unwrap().unwrap();
    release(guard).await;
}

#[tokio::test]
async fn a_waiter_hears_of_its_turn_through_compactions_and_snapshots() {
    let Some(mut cluster) = EtcdCluster::start("snapshots", 3).await else {
        return;
    };
    let (locks, others) = (patient(&cluster.url()).await, patient(&cluster.url()).await);
    let guard = take(&locks, "key", LONG).await;
    let waiter = queued(&others, others.lock("key").ttl(LONG).wait_forever()).await;
    let leader = cluster.leader().await;
    let away = (leader + 1) % 3;
    cluster.members[away].kill().await;
    // More than a member keeps of its log: the one that is away is sent a snapshot.
    for number in 0..200 {
        cluster.members[leader]
            .put("else", &number.to_string())
            .await;
    }
    cluster.members[leader].compact().await;
    cluster.members[away].restart().await;
    cluster.members[leader].kill().await;
    let fence = guard.fencing_token();
    release(guard).await;
    let next = within(TIME_LIMIT, waiter).await.unwrap();
    assert!(next.fencing_token() > fence);
    release(next).await;
}

#[tokio::test]
async fn an_entry_that_is_deleted_by_hand_is_a_lost_lock() {
    let Some(server) = EtcdServer::start("a deleted entry").await else {
        return;
    };
    let locks = connect(&*server.url()).await;
    let guard = take(&locks, "key", LONG).await;
    let [entry] = &server.keys("lock/key/").await[..] else {
        panic!("no entry");
    };
    server.delete(entry).await;
    within(TIME_LIMIT, guard.lost()).await;
    assert!(!guard.is_held());
}

#[tokio::test]
async fn a_release_wakes_the_next_one_and_no_crowd() {
    let Some(server) = EtcdServer::start("a crowd").await else {
        return;
    };
    let locks = connect(&*server.url()).await;
    let mut guard = take(&locks, "key", LONG).await;
    let mut waiters = VecDeque::new();
    for _ in 0..12 {
        let others = connect(&*server.url()).await;
        let waiter = queued(&others, others.lock("key").ttl(LONG).wait_forever()).await;
        waiters.push_back((others, waiter));
    }
    let reads = async || server.answered("Range").await + server.answered("Txn").await;
    let before = reads().await;
    for _ in 0..3 {
        release(guard).await;
        let (_others, waiter) = waiters.pop_front().unwrap();
        guard = within(TIME_LIMIT, waiter).await.unwrap();
    }
    let reads = reads().await - before;
    // Each of the three reads the queue, and announces later that it has entered.
    assert!(reads <= 9, "{reads} reads for three turns");
}

#[tokio::test]
async fn an_announcement_that_is_lost_or_refused_is_sent_again() {
    let Some(server) = EtcdServer::start("announcements").await else {
        return;
    };
    let gateway = Gateway::start(server.addr(), 100);
    let (locks, second, third) = (
        connect(&*server.url()).await,
        connect(gateway.url()).await,
        connect(&*server.url()).await,
    );
    // Unavailable: it may have been done. Too many requests: it was not.
    for status in [14, 8] {
        let permit = |locks: &lock_runtime::LockManager| {
            let request = locks.lock(format!("key:{status}")).permits(2);
            request.ttl(LONG).wait_forever()
        };
        let first = within(TIME_LIMIT, permit(&locks).acquire()).await.unwrap();
        let held = within(TIME_LIMIT, permit(&locks).acquire()).await.unwrap();
        let next = queued(&second, permit(&second)).await;
        let last = queued(&third, permit(&third)).await;
        gateway.refuse_rewrites(1, status);
        release(first).await;
        let next = within(TIME_LIMIT, next).await.unwrap();
        eventually(TIME_LIMIT, async || gateway.refused_rewrites() == 1).await;
        // The last one has to hear that the other has entered, to wait for this one.
        release(held).await;
        release(within(TIME_LIMIT, last).await.unwrap()).await;
        release(next).await;
    }
}

#[tokio::test]
async fn a_watch_that_is_refused_without_its_number_is_set_again() {
    let Some(server) = EtcdServer::start("refused watches").await else {
        return;
    };
    let gateway = Gateway::start(server.addr(), 100);
    let (locks, others) = (connect(&*server.url()).await, connect(gateway.url()).await);
    let guard = take(&locks, "key", LONG).await;
    gateway.refuse_watches(1);
    let waiter = queued(&others, others.lock("key").ttl(LONG).wait_forever()).await;
    eventually(TIME_LIMIT, async || gateway.refused_watches() == 1).await;
    release(guard).await;
    release(within(TIME_LIMIT, waiter).await.unwrap()).await;
    // The same of a lock that is held and revoked.
    gateway.refuse_watches(1);
    let guard = take(&others, "key", LONG).await;
    eventually(TIME_LIMIT, async || gateway.refused_watches() == 2).await;
    locks.force_release("key").await.unwrap();
    within(TIME_LIMIT, guard.lost()).await;
}

#[tokio::test]
async fn a_long_queue_of_one_manager_costs_each_newcomer_and_each_turn_little() {
    const WAITERS: u64 = 200;
    let Some(server) = EtcdServer::start("a long queue").await else {
        return;
    };
    let (locks, others) = (connect(&*server.url()).await, connect(&*server.url()).await);
    let guard = take(&locks, "key", LONG).await;
    let (bytes, calls) = (server.sent().await, server.answered("Txn").await);
    let mut waiters = JoinSet::new();
    for _ in 0..WAITERS {
        let request = others.lock("key").ttl(LONG).wait_forever();
        waiters.spawn(request.acquire());
    }
    // The first two make the lease's marker.
    let joined = async || server.answered("Txn").await > calls + WAITERS;
    eventually(3 * TIME_LIMIT, joined).await;
    let each = (server.sent().await - bytes) / WAITERS;
    assert!(each < 2_000, "{each} bytes for each who joins");

    let bytes = server.sent().await;
    release(guard).await;
    // Whoever's call the server left without an answer for too long has entered behind the others.
    for _ in 0..10 {
        let next = within(TIME_LIMIT, waiters.join_next()).await;
        release(next.unwrap().unwrap().unwrap()).await;
    }
    let each = (server.sent().await - bytes) / 10;
    assert!(each < 4_000, "{each} bytes for each turn");
}
