//! Downgrades on a PostgreSQL server whose requests and answers are lost, and transactions of writers.
//!
//! Section: guarantees.md#from-writer-to-reader

use tests::{
    LONG, PostgresServer, SCHEMA, Scene, TIME_LIMIT, poll_once, queued, release, settled, take,
    within,
};

use super::read;
use super::under_faults;

async fn scene() -> Option<Scene<PostgresServer>> {
    let server = PostgresServer::start("tests/downgrade").await?;
    let addr = server.addr();
    Some(under_faults::scene(server, addr, PostgresServer::url_at).await)
}

tests::tests_under_faults! {
    scene(),
    a_downgrade_is_asked_for_until_it_is_answered,
    a_downgrade_without_an_answer_ends_with_the_lease,
    a_downgrade_that_is_awaited_no_more_releases_the_lock,
}

#[tokio::test]
async fn readers_wait_for_the_asserted_fence_of_the_writer() {
    let Some(scene) = scene().await else { return };
    let mut user = scene.server.peer().await;
    let writer = take(&scene.others, "key", LONG).await;
    let fence = writer.fencing_token();
    let assert = format!("BEGIN; SELECT {SCHEMA}.assert_fence('key', {fence})");
    user.rows(&assert).await;
    let mut next = queued(&scene.others, read(&scene.others)).await;
    let mut downgrading = Box::pin(writer.downgrade());
    assert!(poll_once(&mut downgrading).await.is_pending());
    settled(&scene.others).await;
    assert!(poll_once(&mut downgrading).await.is_pending(), "it is open");
    assert!(poll_once(&mut next).await.is_pending(), "it is open");
    user.rows("COMMIT").await;
    let reader = within(TIME_LIMIT, downgrading).await.expect("it is held");
    let next = within(TIME_LIMIT, next).await.expect("it is next");
    assert!(next.fencing_token() > fence);
    // As a reader's.
    user.rows(&assert).await;
    user.rows("COMMIT").await;
    release(reader).await;
    release(next).await;
}
