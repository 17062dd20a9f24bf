//! What is known of those who cannot be asked: stopped processes, foreign clients, a server that is gone.
//!
//! Section: guarantees.md#looking-at-a-lock

use std::time::Duration;

use lock_runtime::inspect::Holder;
use lock_runtime::{LockError, LockManager};
use tests::{
    LONG, Proxy, RedisServer, TIME_LIMIT, Worker, connect, eventually, queued, release, take,
    within,
};

use crate::{list, status};

/// The process that the worker is, as its status has it.
pub(crate) async fn holder_in(worker: &Worker, locks: &LockManager) -> Holder {
    let mut held = status(locks, "key").await;
    assert_eq!(held.holders.len(), 1, "{held:?}");
    let holder = held.holders.remove(0);
    assert_eq!(holder.process, Some(worker.pid()), "{holder:?}");
    holder
}

#[tokio::test]
async fn a_holder_whose_process_is_stopped_is_still_named() {
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let url = server.url();
    for kind in ["exclusive", "reader", "permits:2"] {
        let args = ["holder", &url, kind, "key", "60000"];
        let mut worker = Worker::spawn(env!("CARGO_BIN_EXE_worker"), args).await;
        let fence = worker.fence().await;
        let awake = holder_in(&worker, &locks).await;
        assert_eq!(awake.fencing_token.unwrap().get(), fence);
        assert!(awake.since.is_some() && awake.answers == Some(true));
        worker.pause();
        let asleep = holder_in(&worker, &locks).await;
        assert_eq!((asleep.since, asleep.fencing_token), (None, None));
        assert_eq!(asleep.answers, Some(false), "{asleep:?}");
        assert_eq!((&asleep.id, &asleep.host), (&awake.id, &awake.host));
        assert!(asleep.remaining.unwrap() > LONG / 2);
        // Its lock can be taken all the same; it learns of it when it wakes.
        assert_eq!(locks.force_release("key").await.unwrap(), 1);
        let next = locks.lock("key").wait(Duration::ZERO).acquire();
        let next = within(TIME_LIMIT, next).await.unwrap();
        assert!(next.fencing_token().get() > fence);
        worker.resume();
        let lost = worker.line().await;
        assert!(lost.contains("lost"), "{lost}");
        release(next).await;
    }
}

#[tokio::test]
async fn a_foreign_client_is_shown_and_removed() {
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let owner = RedisServer::owner_key("key");
    for (ttl, value) in [(false, "somebody else"), (true, "me@home"), (true, "")] {
        server.cmd(&["SET", &owner, value]).await;
        if ttl {
            server.cmd(&["PEXPIRE", &owner, "60000"]).await;
        }
        let waiter = queued(&locks, locks.lock("key").ttl(LONG).wait_forever()).await;
        let held = status(&locks, "key").await;
        assert_eq!((held.holders.len(), held.waiting), (1, 1), "{held:?}");
        let holder = &held.holders[0];
        assert_eq!(&*holder.id, value);
        assert_eq!(holder.remaining.is_some(), ttl, "{holder:?}");
        assert_eq!((holder.process, &holder.host), (None, &None));
        assert_eq!((holder.since, holder.fencing_token), (None, None));
        assert!(!holder.cooling_down && holder.answers.is_none());
        assert_eq!(list(&locks, "*").await, ["key"]);
        assert_eq!(locks.force_release("key").await.unwrap(), 1);
        release(within(Duration::from_secs(3), waiter).await.unwrap()).await;
    }
    assert_eq!(server.keys("lock:{*").await, [""; 0]);
}

#[tokio::test]
async fn a_server_that_is_gone_cannot_be_asked() {
    let mut server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    server.kill().await;
    let error = within(TIME_LIMIT, locks.status("key")).await.unwrap_err();
    assert!(matches!(error, LockError::Unavailable { .. }), "{error}");
    let error = within(TIME_LIMIT, locks.list("*")).await.unwrap_err();
    assert!(matches!(error, LockError::Unavailable { .. }), "{error}");
    let error = within(TIME_LIMIT, locks.force_release("key"))
        .await
        .unwrap_err();
    assert!(matches!(error, LockError::Unavailable { .. }), "{error}");
}

/// As behind an address whose server was replaced, of which a connection without work hears nothing.
#[tokio::test]
async fn a_server_that_has_become_a_replica_is_asked_nothing() {
    let (old, new) = (RedisServer::start().await, RedisServer::start().await);
    let mut proxy = Proxy::start(old.addr());
    let (idle, others) = (connect(proxy.url()).await, connect(new.url()).await);
    release(take(&others, "key", LONG).await).await;
    // It has lost its master, and knows what it knew then.
    old.cmd(&["REPLICAOF", "127.0.0.1", "1"]).await;
    proxy.lead_to(new.addr()).await;
    let guard = take(&others, "key", LONG).await;
    let asked = async || {
        let asked = within(TIME_LIMIT, idle.status("key")).await;
        asked.map(|status| assert_eq!(status.holders.len(), 1, "{status:?}"))
    };
    // It hears that the server is a replica, once at the most.
    if let Err(error) = asked().await {
        assert!(error.to_string().contains("replica"), "{error}");
    }
    eventually(TIME_LIMIT, async || asked().await.is_ok()).await;
    let listed = within(TIME_LIMIT, idle.list("*")).await.expect("a list");
    assert_eq!(listed.len(), 1, "{listed:?}");
    release(guard).await;
}
