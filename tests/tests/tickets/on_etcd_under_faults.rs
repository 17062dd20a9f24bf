//! Tickets on an etcd server whose requests and answers are lost.
//!
//! Section: guarantees.md#tickets

use tests::{EtcdServer, Scene, release};

use super::under_faults;
use super::{adopt, is_refused};

async fn scene() -> Option<Scene<EtcdServer>> {
    let server = EtcdServer::start("tests/tickets").await?;
    let addr = server.addr();
    Some(under_faults::scene(server, addr, |_, addr| format!("etcd://{addr}")).await)
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
async fn a_ticket_survives_the_leases_of_managers() {
    let Some(scene) = scene().await else { return };
    let ticket = under_faults::ticket(&scene).await;
    scene.server.revoke_leases("lock//lease-").await;
    let guard = adopt(&scene.ours, &ticket).await.expect("it is valid");
    is_refused(&scene.others, &ticket).await;
    assert!(guard.is_held());
    release(guard).await;
}
