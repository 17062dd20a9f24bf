//! What becomes of a history on a MySQL server without a word of the holder, and over an upgrade.

use lock_runtime::inspect::GrantEnd;
use tests::{
    Home as _, LONG, MysqlHome, TIME_LIMIT, Worker, connect, queued, release, take, within,
};

use crate::{ends, history};

#[tokio::test]
async fn a_holder_that_is_killed_is_remembered_as_expired() {
    let Some(home) = MysqlHome::start().await else {
        return;
    };
    let url = format!("{}?history=5", home.url());
    let args = ["holder", &url, "exclusive", "key", "1000"];
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
    release(next).await;
}

#[tokio::test]
async fn tables_of_an_earlier_version_are_upgraded_and_their_locks_are_kept() {
    let Some(home) = MysqlHome::start().await else {
        return;
    };
    let before = connect(home.url()).await;
    let guard = take(&before, "key", LONG).await;
    let older = "ALTER TABLE lock_runtime_sharer DROP COLUMN permits; \
                 ALTER TABLE lock_runtime_waiter MODIFY kind VARBINARY(12) NOT NULL; \
                 DROP TABLE lock_runtime_history; UPDATE lock_runtime_meta SET version = 1";
    home.peer().await.rows(older).await;
    let locks = connect(format!("{}?history=5", home.url())).await;
    // Longer than the kinds of the earlier version.
    let request = locks.lock("key").permits(1_000_000_000).take(999);
    let next = queued(&locks, request.ttl(LONG).wait_forever()).await;
    let fence = guard.fencing_token();
    release(guard).await;
    let next = within(TIME_LIMIT, next).await.unwrap();
    assert!(next.fencing_token() > fence);
    release(next).await;
    let known = history(&locks, "key").await;
    assert_eq!(known[0].end, Some(GrantEnd::Released), "{known:?}");
}
