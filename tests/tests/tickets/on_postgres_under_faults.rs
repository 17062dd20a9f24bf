//! Tickets on a PostgreSQL server whose requests and answers are lost, and transactions of former holders.
//!
//! Section: guarantees.md#tickets

use tests::{
    LONG, PostgresServer, SCHEMA, Scene, TIME_LIMIT, poll_once, release, settled, take, within,
};

use super::under_faults;

async fn scene() -> Option<Scene<PostgresServer>> {
    let server = PostgresServer::start("tests/tickets").await?;
    let addr = server.addr();
    Some(under_faults::scene(server, addr, PostgresServer::url_at).await)
}

tests::tests_under_faults! {
    scene(),
    a_ticket_is_asked_for_again_and_is_written_once,
    an_adopter_whose_answer_is_lost_finds_that_it_was_it,
    an_adopter_that_goes_away_leaves_the_lock_or_the_ticket,
    a_ticket_without_an_answer_is_taken_back_when_the_server_answers,
    a_ticket_that_is_waited_for_no_more_is_taken_back,
    a_ticket_ends_while_its_adopter_cannot_be_heard,
}

#[tokio::test]
async fn an_adopter_waits_for_an_asserted_fence() {
    let Some(scene) = scene().await else { return };
    let mut user = scene.server.peer().await;
    let guard = take(&scene.others, "key", LONG).await;
    let fence = guard.fencing_token();
    user.rows(&format!(
        "BEGIN; SELECT {SCHEMA}.assert_fence('key', {fence})"
    ))
    .await;
    let ticket = within(TIME_LIMIT, guard.into_ticket(LONG)).await;
    let ticket = ticket.expect("it is held");
    let mut adopting = scene.ours.adopt(&ticket).ttl(LONG).wait_forever().acquire();
    assert!(poll_once(&mut adopting).await.is_pending());
    settled(&scene.ours).await;
    assert!(poll_once(&mut adopting).await.is_pending(), "it is open");
    user.rows("COMMIT").await;
    let guard = within(TIME_LIMIT, adopting).await.expect("it is valid");
    assert!(guard.fencing_token() > fence);
    release(guard).await;
}
