//! Requests and answers about tickets that are lost, and servers that stand still.

use std::net::SocketAddr;
use std::task::Poll;
use std::time::Duration;

use lock_runtime::{LockError, Ticket};
use tests::{LONG, Lost, Scene, TIME_LIMIT, poll_once, release, take, within};

use super::{adopt, is_refused};

/// `url` names the server by an address.
pub(super) async fn scene<S>(
    server: S,
    addr: SocketAddr,
    url: impl Fn(&S, SocketAddr) -> String,
) -> Scene<S> {
    let scene = Scene::new(server, addr, url).await;
    // The server has to know what is called, so that an answer is not that it does not.
    let ticket = take(&scene.ours, "key", LONG).await.into_ticket(LONG).await;
    let ticket = ticket.expect("it is held");
    release(adopt(&scene.ours, &ticket).await.expect("it is valid")).await;
    scene
}

/// A ticket that others have issued.
pub(super) async fn ticket<S>(scene: &Scene<S>) -> Ticket {
    let guard = take(&scene.others, "key", LONG).await;
    guard.into_ticket(LONG).await.expect("it is held")
}

/// Whether the lock is that of a ticket, if it is not free.
async fn is_issued<S>(scene: &Scene<S>) -> Option<bool> {
    let status = scene.others.status("key").await.expect("an answer");
    status.holders.first().map(|it| it.ticket)
}

pub(super) async fn a_ticket_is_asked_for_again_and_is_written_once<S>(
    scene: &Scene<S>,
    lost: Lost,
) {
    let guard = take(&scene.ours, "key", LONG).await;
    let mut issuing = Box::pin(guard.into_ticket(LONG));
    scene.proxy.lose(lost, &mut issuing).await;
    let ticket = within(TIME_LIMIT, issuing).await.expect("an answer");
    assert_eq!(is_issued(scene).await, Some(true), "{lost:?}");
    release(adopt(&scene.others, &ticket).await.expect("it is valid")).await;
}

pub(super) async fn an_adopter_whose_answer_is_lost_finds_that_it_was_it<S>(
    scene: &Scene<S>,
    lost: Lost,
) {
    let ticket = ticket(scene).await;
    let mut adopting = scene.ours.adopt(&ticket).ttl(LONG).acquire();
    scene.proxy.lose(lost, &mut adopting).await;
    let guard = within(TIME_LIMIT, adopting).await.expect("it has adopted");
    assert_eq!(is_issued(scene).await, Some(false), "{lost:?}");
    is_refused(&scene.others, &ticket).await;
    assert!(guard.is_held());
    release(guard).await;
}

pub(super) async fn an_adopter_that_goes_away_leaves_the_lock_or_the_ticket<S>(
    scene: &Scene<S>,
    lost: Lost,
) {
    let ticket = ticket(scene).await;
    let mut adopting = scene.ours.adopt(&ticket).ttl(LONG).acquire();
    scene.proxy.lose(lost, &mut adopting).await;
    drop(adopting);
    scene.ours.shutdown().await;
    match adopt(&scene.others, &ticket).await {
        Ok(guard) => release(guard).await,
        Err(refused) => assert!(matches!(refused, LockError::InvalidTicket { .. })),
    }
    release(take(&scene.others, "key", LONG).await).await;
}

pub(super) async fn a_ticket_without_an_answer_is_taken_back_when_the_server_answers<S>(
    scene: &Scene<S>,
    lost: Lost,
) {
    // A machine that stands still does so for less.
    let ttl = Duration::from_secs(3);
    let guard = take(&scene.ours, "key", ttl).await;
    let mut issuing = Box::pin(guard.into_ticket(LONG));
    scene.lose_for_good(lost, &mut issuing).await;
    let failed = within(TIME_LIMIT, issuing).await;
    let failed = failed.expect_err("nobody answers");
    assert!(matches!(failed, LockError::Unavailable { .. }), "{failed}");
    scene.proxy.requests().pass();
    // Long before the ticket would end.
    release(take(&scene.others, "key", LONG).await).await;
    scene.ours.shutdown().await;
}

pub(super) async fn a_ticket_that_is_waited_for_no_more_is_taken_back<S>(
    scene: &Scene<S>,
    lost: Lost,
) {
    let guard = take(&scene.ours, "key", LONG).await;
    let mut issuing = Box::pin(guard.into_ticket(LONG));
    scene.proxy.lose(lost, &mut issuing).await;
    drop(issuing);
    release(take(&scene.others, "key", LONG).await).await;
}

pub(super) async fn a_ticket_ends_while_its_adopter_cannot_be_heard<S>(
    scene: &Scene<S>,
    lost: Lost,
) {
    let time = Duration::from_millis(300);
    let ticket = take(&scene.others, "key", LONG).await.into_ticket(time);
    let ticket = ticket.await.expect("it is held");
    scene.proxy.requests().hold();
    let adopter = scene.ours.adopt(&ticket).ttl(LONG).wait_forever();
    let mut adopting = adopter.acquire();
    assert!(matches!(poll_once(&mut adopting).await, Poll::Pending));
    within(TIME_LIMIT, scene.proxy.requests().held()).await;
    let guard = take(&scene.others, "key", LONG).await;
    if lost == Lost::Request {
        scene.proxy.cut().await;
    }
    scene.proxy.requests().pass();
    let refused = within(TIME_LIMIT, adopting).await;
    let refused = refused.expect_err("somebody else holds it");
    assert!(
        matches!(refused, LockError::InvalidTicket { .. }),
        "{refused}"
    );
    assert!(guard.is_held());
    release(guard).await;
}
