//! Tickets on a ZooKeeper server whose requests and answers are lost.
//!
//! Section: guarantees.md#tickets

use tests::{Scene, ZooKeeperServer};

use super::under_faults;

async fn scene() -> Option<Scene<ZooKeeperServer>> {
    let server = ZooKeeperServer::start("tests/tickets").await?;
    let addr = server.addr();
    Some(
        under_faults::scene(server, addr, |_, addr| {
            format!("zookeeper://{addr}/tickets")
        })
        .await,
    )
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
