//! What a waiter hears of, and what it cannot hear of.

use std::collections::VecDeque;

use tests::{
    EtcdCluster, EtcdServer, LONG, PATIENCE, Proxy, connect, eventually, in_line, release, take,
    within,
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
    let waiter = in_line(&others, others.lock("key").ttl(LONG).wait_forever()).await;
    let waiter = tokio::spawn(waiter);
    for _ in 0..2 {
        proxy.refuse().await;
        proxy.cut().await;
        for number in 0..5 {
            server.put("else", &number.to_string()).await;
        }
        server.compact().await;
        proxy.admit();
        eventually(PATIENCE, async || others.health().await.connected).await;
    }
    proxy.refuse().await;
    proxy.cut().await;
    release(guard).await;
    server.compact().await;
    proxy.admit();
    let guard = within(PATIENCE, waiter).await.unwrap();
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
    eventually(PATIENCE, async || {
        locks.status("key").await.unwrap().waiters == 1
    })
    .await;
    proxy.refuse().await;
    proxy.cut().await;
    release(guard).await;
    server.compact().await;
    proxy.admit();
    let guard = within(PATIENCE, waiter).await.unwrap().unwrap();
    release(guard).await;
}

#[tokio::test]
async fn a_waiter_hears_of_its_turn_through_compactions_and_snapshots() {
    let Some(mut cluster) = EtcdCluster::start("snapshots", 3).await else {
        return;
    };
    let (locks, others) = (patient(&cluster.url()).await, patient(&cluster.url()).await);
    let guard = take(&locks, "key", LONG).await;
    let waiter = in_line(&others, others.lock("key").ttl(LONG).wait_forever()).await;
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
    let next = within(PATIENCE, waiter).await.unwrap();
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
    within(PATIENCE, guard.lost()).await;
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
        let waiter = in_line(&others, others.lock("key").ttl(LONG).wait_forever()).await;
        waiters.push_back((others, waiter));
    }
    let before = server.answered("Range").await;
    for _ in 0..3 {
        release(guard).await;
        let (_others, waiter) = waiters.pop_front().unwrap();
        guard = within(PATIENCE, waiter).await.unwrap();
    }
    let reads = server.answered("Range").await - before;
    // Each of the three looks at the line, and later whether its entry is still there.
    assert!(reads <= 9, "{reads} reads for three turns");
}
