//! Since when a holder that does not answer has its lock, and its fencing token, from the store alone.
//!
//! Section: guarantees.md#looking-at-a-lock

use std::time::{Duration, SystemTime};

use lock_runtime::LockManager;
use lock_runtime::inspect::Holder;
use tests::{
    Home as _, LONG, RedisServer, SetnxServer, Store, TIME_LIMIT, Worker, connect, eventually,
    on_every_store, queued, release, take, within,
};

use crate::redis_server::holder_in;
use crate::status;

on_every_store! {
    a_holder_is_dated_from_its_grant_or_said_to_have_waited [list fencing],
}

async fn a_holder_is_dated_from_its_grant_or_said_to_have_waited(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let (first_may, second_may) = match locks.capabilities().store {
        "ZooKeeper" => (true, true),
        "etcd" => (false, true),
        _ => (false, false),
    };
    let started = SystemTime::now();
    let first = take(&locks, "key", LONG).await;
    let waiter = queued(&others, others.lock("key").ttl(LONG).wait_forever()).await;
    let asked = [
        status(&others, "key").await.holders.remove(0),
        listed(&others).await,
    ];
    for holder in asked {
        assert_eq!(holder.may_have_waited, first_may, "{holder:?}");
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    let released = SystemTime::now();
    release(first).await;
    let second = within(TIME_LIMIT, waiter).await.unwrap();
    let holder = status(&others, "key").await.holders.remove(0);
    assert_eq!(holder.may_have_waited, second_may, "{holder:?}");
    assert_eq!(listed(&others).await.may_have_waited, second_may);
    let earliest = if second_may { started } else { released };
    // Servers count in milliseconds.
    let since = holder.since.unwrap() + Duration::from_millis(2);
    assert!(since >= earliest, "{holder:?} since {earliest:?}");
    release(second).await;
}

/// A process that holds the lock, and its fencing token.
async fn holder(url: &str, kind: &str, key: &str, ttl: &str) -> (Worker, u64) {
    let args = ["holder", url, kind, key, ttl];
    let mut worker = Worker::spawn(env!("CARGO_BIN_EXE_worker"), args).await;
    let fence = worker.fence().await;
    (worker, fence)
}

/// The holder as an overview has it.
async fn listed(locks: &LockManager) -> Holder {
    let overview = within(TIME_LIMIT, locks.overview("key")).await.unwrap();
    overview.locks[0].holders[0].clone()
}

#[tokio::test]
async fn a_silent_holder_is_dated_once_it_has_renewed_its_lease() {
    let server = RedisServer::start().await;
    let (url, locks) = (server.url(), connect(server.url()).await);
    for kind in ["exclusive", "reader", "permits:2"] {
        let started = SystemTime::now();
        let (mut worker, fence) = holder(&url, kind, "key", "9000").await;
        // It renews after a third of its ttl.
        let is_noted = async || !server.keys("*:n:*").await.is_empty();
        eventually(TIME_LIMIT, is_noted).await;
        worker.pause();
        for key in server.keys("lock:{key}*").await {
            // As long as the test needs it.
            server.cmd(&["PEXPIRE", &key, "60000"]).await;
        }
        let asleep = holder_in(&worker, &locks).await;
        assert_eq!(asleep.answers, Some(false), "{asleep:?}");
        for holder in [asleep, listed(&locks).await] {
            assert_eq!(holder.fencing_token.unwrap().get(), fence, "{kind}");
            let since = holder.since.expect("it is noted");
            assert!(since >= started, "{holder:?}");
            let held = since.elapsed().unwrap();
            assert!(
                held >= Duration::from_secs(2),
                "not from the renewal: {held:?}"
            );
        }
        worker.kill().await;
        server.cmd(&["FLUSHALL"]).await;
    }
}

/// In this layout, which clusters have too, the counter of a lock is the time of its last grant.
#[tokio::test]
async fn a_silent_holder_is_dated_where_each_lock_has_a_counter() {
    let server = RedisServer::start().await;
    let url = format!("{}?layout=declared", server.url());
    let locks = connect(&url).await;
    for (kind, is_known) in [("exclusive", true), ("reader", false)] {
        let started = SystemTime::now();
        let (mut worker, _) = holder(&url, kind, "key", "60000").await;
        let granted = SystemTime::now();
        worker.pause();
        let asleep = holder_in(&worker, &locks).await;
        assert_eq!(asleep.answers, Some(false));
        for holder in [asleep, listed(&locks).await] {
            assert_eq!(holder.since.is_some(), is_known, "{holder:?}");
            assert_eq!(holder.fencing_token, None, "{holder:?}");
            let is_dated = |it| started <= it && it <= granted + TIME_LIMIT;
            assert!(holder.since.is_none_or(is_dated), "{holder:?}");
        }
        assert_eq!(locks.force_release("key").await.unwrap(), 1);
        worker.kill().await;
    }
}

#[tokio::test]
async fn a_silent_holder_of_the_setnx_protocol_is_dated_from_its_grant() {
    let server = SetnxServer::start().await;
    let (url, locks) = (server.url(), connect(server.url()).await);
    let started = SystemTime::now();
    let (worker, fence) = holder(&url, "exclusive", "key", "60000").await;
    worker.pause();
    let asleep = holder_in(&worker, &locks).await;
    assert_eq!(asleep.answers, Some(false));
    assert_eq!(asleep.fencing_token.expect("it is noted").get(), fence);
    assert!(asleep.since.expect("the same") >= started, "{asleep:?}");
}
