//! What a history costs on a PostgreSQL server, and what becomes of it without a word of the holder, and over an upgrade.

use lock_runtime::LockManager;
use lock_runtime::inspect::GrantEnd;
use tests::{
    Home as _, LONG, PostgresHome, TIME_LIMIT, Worker, connect, queued, release, take, take_turn,
    within,
};

use crate::{ends, history};

async fn keeping(home: &PostgresHome) -> LockManager {
    connect(format!("{}&history=5", home.url())).await
}

#[tokio::test]
async fn a_holder_that_is_killed_is_remembered_as_expired() {
    let Some(home) = PostgresHome::start().await else {
        return;
    };
    let url = format!("{}&history=5", home.url());
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

/// Whoever looks at a table that is locked like this waits.
#[tokio::test]
async fn without_a_history_no_call_touches_its_table() {
    let Some(home) = PostgresHome::start().await else {
        return;
    };
    let locks = connect(home.url()).await;
    take_turn(&locks, "warm").await;
    let mut other = home.peer().await;
    let lock = format!(
        "BEGIN; LOCK TABLE {}.history IN ACCESS EXCLUSIVE MODE",
        home.schema()
    );
    other.rows(&lock).await;
    let first = take(&locks, "key", LONG).await;
    let next = queued(&locks, locks.lock("key").ttl(LONG).wait_forever()).await;
    release(first).await;
    let next = within(TIME_LIMIT, next).await.unwrap();
    let ticket = within(TIME_LIMIT, next.into_ticket(LONG)).await.unwrap();
    let adopted = within(TIME_LIMIT, locks.adopt(&ticket).ttl(LONG).acquire()).await;
    release(adopted.unwrap()).await;
    let both = locks.lock_all(["a", "b"]).ttl(LONG);
    drop(within(TIME_LIMIT, both.acquire()).await.unwrap());
    other.rows("ROLLBACK").await;
}

#[tokio::test]
async fn a_schema_without_histories_is_upgraded_and_its_locks_are_kept() {
    let Some(home) = PostgresHome::start().await else {
        return;
    };
    let before = connect(home.url()).await;
    let guard = take(&before, "key", LONG).await;
    let schema = home.schema();
    let mut other = home.peer().await;
    let noted = ["acquire", "ask", "adopt", "release", "issue"];
    for name in noted
        .map(|it| format!("{it}_noted"))
        .iter()
        .map(|it| &**it)
        .chain(["grants"])
    {
        other.rows(&format!("DROP FUNCTION {schema}.{name}")).await;
    }
    let older = format!("DROP TABLE {schema}.history; UPDATE {schema}.meta SET version = 1");
    other.rows(&older).await;
    let locks = keeping(&home).await;
    let next = queued(&locks, locks.lock("key").ttl(LONG).wait_forever()).await;
    // The manager of the older version hands the lock over, and the waiter confirms that.
    let fence = guard.fencing_token();
    release(guard).await;
    let next = within(TIME_LIMIT, next).await.unwrap();
    assert!(next.fencing_token() > fence);
    release(next).await;
    take_turn(&locks, "key").await;
    let known = history(&locks, "key").await;
    assert_eq!(known[0].end, Some(GrantEnd::Released), "{known:?}");
}
