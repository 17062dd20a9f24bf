//! Requests and answers about tickets that are lost, and servers that stand still.

use std::time::Duration;

use lock_runtime::{LockError, LockManager, Ticket};
use tests::{LONG, Lost, Proxy, RedisServer, TIME_LIMIT, connect, release, take, within};

use super::{adopt, is_refused};

struct Scene {
    server: RedisServer,
    proxy: Proxy,
    /// Behind the proxy.
    ours: LockManager,
    others: LockManager,
}

impl Scene {
    async fn new() -> Self {
        let server = RedisServer::start().await;
        let proxy = Proxy::start(server.addr());
        let ours = connect(proxy.url()).await;
        // The server has to know the scripts, so that an answer is not that it does not.
        let ticket = take(&ours, "key", LONG).await.into_ticket(LONG).await;
        release(
            adopt(&ours, &ticket.expect("it is held"))
                .await
                .expect("it is valid"),
        )
        .await;
        Self {
            ours,
            others: connect(server.url()).await,
            server,
            proxy,
        }
    }

    /// Whether the lock is there, and of a ticket.
    async fn is_issued(&self) -> Option<bool> {
        let owner = self.server.owner("key").await?;
        Some(owner.starts_with('='))
    }
}

#[tokio::test]
async fn a_ticket_is_asked_for_again_and_is_written_once() {
    for lost in [Lost::Request, Lost::Reply] {
        let scene = Scene::new().await;
        let guard = take(&scene.ours, "key", LONG).await;
        let mut issuing = Box::pin(guard.into_ticket(LONG));
        scene.proxy.lose(lost, &mut issuing).await;
        let ticket = within(TIME_LIMIT, issuing).await.expect("an answer");
        assert_eq!(scene.is_issued().await, Some(true), "{lost:?}");
        release(adopt(&scene.others, &ticket).await.expect("it is valid")).await;
    }
}

#[tokio::test]
async fn an_adopter_whose_answer_is_lost_finds_that_it_was_it() {
    for lost in [Lost::Request, Lost::Reply] {
        let scene = Scene::new().await;
        let ticket: Ticket = take(&scene.others, "key", LONG)
            .await
            .into_ticket(LONG)
            .await
            .expect("it is held");
        let mut adopting = scene.ours.adopt(&ticket).ttl(LONG).acquire();
        scene.proxy.lose(lost, &mut adopting).await;
        let guard = within(TIME_LIMIT, adopting).await.expect("it has adopted");
        assert_eq!(scene.is_issued().await, Some(false), "{lost:?}");
        is_refused(&scene.others, &ticket).await;
        assert!(guard.is_held());
        release(guard).await;
    }
}

#[tokio::test]
async fn an_adopter_that_goes_away_leaves_the_lock_or_the_ticket() {
    for lost in [Lost::Request, Lost::Reply] {
        let scene = Scene::new().await;
        let ticket = take(&scene.others, "key", LONG).await.into_ticket(LONG);
        let ticket = ticket.await.expect("it is held");
        let mut adopting = scene.ours.adopt(&ticket).ttl(LONG).acquire();
        scene.proxy.lose(lost, &mut adopting).await;
        drop(adopting);
        scene.ours.shutdown().await;
        match lost {
            Lost::Request => release(adopt(&scene.others, &ticket).await.expect("unused")).await,
            Lost::Reply => release(take(&scene.others, "key", LONG).await).await,
        }
    }
}

#[tokio::test]
async fn a_ticket_without_an_answer_is_taken_back_when_the_server_answers() {
    for lost in [Lost::Request, Lost::Reply] {
        let scene = Scene::new().await;
        let ttl = Duration::from_millis(500);
        let guard = take(&scene.ours, "key", ttl).await;
        let mut issuing = Box::pin(guard.into_ticket(LONG));
        scene.proxy.lose(lost, &mut issuing).await;
        // What is sent again gets through no more.
        scene.proxy.requests().hold();
        let failed = within(TIME_LIMIT, issuing).await;
        let failed = failed.expect_err("nobody answers");
        assert!(matches!(failed, LockError::Unavailable { .. }), "{failed}");
        scene.proxy.requests().pass();
        // Long before the ticket would end.
        release(take(&scene.others, "key", LONG).await).await;
        scene.ours.shutdown().await;
    }
}

#[tokio::test]
async fn a_ticket_that_is_waited_for_no_more_is_taken_back() {
    for lost in [Lost::Request, Lost::Reply] {
        let scene = Scene::new().await;
        let guard = take(&scene.ours, "key", LONG).await;
        let mut issuing = Box::pin(guard.into_ticket(LONG));
        scene.proxy.lose(lost, &mut issuing).await;
        drop(issuing);
        release(take(&scene.others, "key", LONG).await).await;
    }
}

#[tokio::test]
async fn a_ticket_ends_while_its_adopter_cannot_be_heard() {
    let scene = Scene::new().await;
    let time = Duration::from_millis(300);
    let ticket = take(&scene.others, "key", LONG).await.into_ticket(time);
    let ticket = ticket.await.expect("it is held");
    scene.proxy.requests().hold();
    let adopting = tokio::spawn(scene.ours.adopt(&ticket).ttl(LONG).wait_forever().acquire());
    within(TIME_LIMIT, scene.proxy.requests().held()).await;
    let guard = take(&scene.others, "key", LONG).await;
    scene.proxy.requests().pass();
    let refused = within(TIME_LIMIT, adopting).await.expect("no panic");
    let refused = refused.expect_err("somebody else holds it");
    assert!(
        matches!(refused, LockError::InvalidTicket { .. }),
        "{refused}"
    );
    assert!(guard.is_held());
    release(guard).await;
}
