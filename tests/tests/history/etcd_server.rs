//! What a history costs on an etcd server, what ends in it without a word of the holder, and how it is bounded.

use lock_runtime::inspect::GrantEnd;
use tests::{
    EtcdServer, LONG, TIME_LIMIT, Worker, connect, eventually, queued, release, take, take_turn,
    within,
};

use crate::{ends, fences, history};

const NOTES: &str = "lock//history/";

async fn start() -> Option<EtcdServer> {
    EtcdServer::start("the history of locks on etcd").await
}

#[tokio::test]
async fn a_holder_that_is_killed_is_remembered_as_expired() {
    let Some(server) = start().await else { return };
    let url = format!("{}?history=5", server.url());
    let args = ["holder", &url, "exclusive", "key", "2000"];
    let mut worker = Worker::spawn(env!("CARGO_BIN_EXE_worker"), args).await;
    let fence = worker.fence().await;
    worker.kill().await;
    let locks = connect(&url).await;
    let next = take(&locks, "key", LONG).await;
    let known = history(&locks, "key").await;
    assert_eq!(ends(&known), [None, Some(GrantEnd::Expired)], "{known:?}");
    assert_eq!(known[1].fencing_token.get(), fence);
    assert_eq!(known[1].process, Some(worker.pid()));
    assert_eq!(known[1].until, Some(known[0].since), "seen by the next");
    assert_eq!(known[0].fencing_token, next.fencing_token());
    release(next).await;
}

/// The notes go with the calls that make and delete entries.
#[tokio::test]
async fn with_a_history_a_free_lock_costs_as_many_calls_as_without() {
    let Some(server) = start().await else { return };
    let mut costs = Vec::new();
    for url in [server.url(), format!("{}?history=2", server.url())] {
        let locks = connect(&url).await;
        for _ in 0..4 {
            take_turn(&locks, "key").await;
        }
        let calls = async || {
            let (txn, delete) = (
                server.answered("Txn").await,
                server.answered("DeleteRange").await,
            );
            (txn + delete, server.revision().await)
        };
        let before = calls().await;
        for _ in 0..4 {
            take_turn(&locks, "key").await;
        }
        let after = calls().await;
        costs.push((after.0 - before.0, after.1 - before.1));
    }
    assert_eq!(costs, [(8, 8); 2]);
}

#[tokio::test]
async fn without_a_history_nothing_is_noted_and_no_lease_is_made_for_notes() {
    let Some(server) = start().await else { return };
    let locks = connect(server.url()).await;
    let first = take(&locks, "key", LONG).await;
    let next = queued(&locks, locks.lock("key").ttl(LONG).wait_forever()).await;
    release(first).await;
    release(within(TIME_LIMIT, next).await.unwrap()).await;
    assert_eq!(server.keys(NOTES).await, [""; 0]);
    assert_eq!(server.answered("LeaseGrant").await, 1, "that of the locks");
}

/// A manager that has kept more leaves what another one deletes.
#[tokio::test]
async fn the_notes_of_a_lock_do_not_grow() {
    let Some(server) = start().await else { return };
    let more = connect(format!("{}?history=6", server.url())).await;
    for _ in 0..8 {
        take_turn(&more, "key").await;
    }
    assert_eq!(server.keys(NOTES).await.len(), 6);
    let fewer = connect(format!("{}?history=2", server.url())).await;
    let last = [
        take_turn(&fewer, "key").await,
        take_turn(&fewer, "key").await,
    ];
    assert_eq!(server.keys(NOTES).await.len(), 2);
    let known = history(&fewer, "key").await;
    assert_eq!(fences(&known), [last[1], last[0]]);
}

/// It has entered the queue, and its caller never got the lock.
#[tokio::test]
async fn a_grant_that_nobody_heard_of_is_not_remembered() {
    let Some(server) = start().await else { return };
    let locks = connect(format!("{}?history=5", server.url())).await;
    let guard = take(&locks, "key", LONG).await;
    let fence = guard.fencing_token();
    let next = queued(&locks, locks.lock("key").ttl(LONG).wait_forever()).await;
    drop(next);
    let is_alone = async || locks.status("key").await.unwrap().waiting == 0;
    eventually(TIME_LIMIT, is_alone).await;
    release(guard).await;
    let known = history(&locks, "key").await;
    assert_eq!(ends(&known), [Some(GrantEnd::Released)], "{known:?}");
    assert_eq!(known[0].fencing_token, fence);
}

/// Whoever administers the server has ended the lease of the notes.
#[tokio::test]
async fn notes_that_are_gone_do_not_disturb_locks() {
    let Some(server) = start().await else { return };
    let locks = connect(format!("{}?history=5", server.url())).await;
    let guard = take(&locks, "key", LONG).await;
    let notes = server.keys(NOTES).await;
    assert_eq!(notes.len(), 1, "{notes:?}");
    server.delete(&notes[0]).await;
    release(guard).await;
    assert_eq!(history(&locks, "key").await, []);
    assert_eq!(
        server.keys(NOTES).await,
        [""; 0],
        "no end without a beginning"
    );
    take_turn(&locks, "key").await;
    assert_eq!(
        ends(&history(&locks, "key").await),
        [Some(GrantEnd::Released)]
    );
}
