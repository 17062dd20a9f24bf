//! A body whose lock is lost is stopped at its local deadline, its caller learns of it, and the lock goes on.
//!
//! Section: guarantees.md#no-poll-of-the-body-starts-after-its-deadline

use std::{
    convert::Infallible,
    sync::Arc,
    time::{Duration, Instant},
};

use lock_runtime::{FencingToken, LockError, LockGuard, LockManager};
use tests::{Polls, Proxy, Pulse, RedisServer, connect, take, unique, within};
use tokio::task::JoinHandle;

const TTL: Duration = Duration::from_secs(1);
const SOON: Duration = Duration::from_secs(5);

/// Our process behind a proxy, and another one that wants the same lock.
struct Scene {
    server: RedisServer,
    proxy: Proxy,
    ours: LockManager,
    theirs: LockManager,
    key: String,
}

/// What became of our lock.
struct Loss {
    fence: FencingToken,
    polls: Polls,
    /// The others, who have waited for the lock from before the fault.
    others: JoinHandle<(LockGuard, Instant)>,
}

impl Scene {
    async fn new() -> Self {
        let server = RedisServer::start().await;
        let proxy = Proxy::start(server.addr());
        Self {
            ours: connect(proxy.url()).await,
            theirs: connect(server.url()).await,
            key: unique("loss"),
            server,
            proxy,
        }
    }

    /// Loses the lock to `fault` while a body runs under it.
    async fn lose(&mut self, fault: impl AsyncFnOnce(&mut Self)) -> Loss {
        let guard = take(&self.ours, &self.key, TTL).await;
        let fence = guard.fencing_token();
        let others = self.wait_in_queue().await;

        let pulse = Pulse::default();
        let body = tokio::spawn({
            let pulse = pulse.clone();
            async move { guard.hold(pulse.beat(&guard)).await }
        });
        within(SOON, pulse.reaches(5)).await;
        fault(self).await;
        let broken = Instant::now();
        let outcome = within(TTL + Duration::from_secs(1), body).await;

        self.assert_lost(outcome.expect("the body does not panic"), fence);
        let polls = pulse.polls();
        assert_eq!(polls.late, 0, "the body ran on after its deadline");
        let last = polls.last.expect("it was polled");
        assert!(last < broken + TTL, "nothing renewed the lock since");
        assert!(polls.dropped.is_some(), "the body still exists");
        Loss {
            fence,
            polls,
            others,
        }
    }

    async fn wait_in_queue(&self) -> JoinHandle<(LockGuard, Instant)> {
        let request = self.theirs.lock(&self.key).ttl(TTL).wait_forever();
        let others = tokio::spawn(async move {
            let guard = request.acquire().await.expect("an answer at last");
            (guard, Instant::now())
        });
        self.server.queued(&self.key, 1).await;
        others
    }

    fn assert_lost(&self, outcome: Result<Infallible, LockError>, fence: FencingToken) {
        match outcome {
            Ok(never) => match never {},
            Err(LockError::Lost {
                key,
                fencing_token: of,
                ..
            }) => {
                assert_eq!((key.as_str(), of), (self.key.as_str(), fence));
            }
            Err(error) => panic!("not lost: {error}"),
        }
    }
}

impl Loss {
    /// The others got the lock, later than our body's last poll where the fault was not the loss itself.
    async fn goes_on(self) {
        let last = self.polls.last;
        let (guard, at) = self.goes_on_anyhow().await;
        assert!(last < Some(at), "two ran at once");
        assert!(guard.is_held());
    }

    async fn goes_on_anyhow(self) -> (LockGuard, Instant) {
        let others = within(2 * TTL + SOON, self.others).await;
        let (guard, at) = others.expect("the others do not panic");
        assert!(guard.fencing_token() > self.fence);
        (guard, at)
    }
}

// Section: guarantees.md#no-poll-of-the-body-starts-after-its-deadline, guarantees.md#one-holder-at-a-time
#[tokio::test]
async fn the_key_is_deleted() {
    let mut scene = Scene::new().await;
    let loss = scene
        .lose(async |scene| {
            let owner = RedisServer::owner_key(&scene.key);
            scene.server.cmd(&["DEL", &owner]).await;
        })
        .await;
    let (guard, _) = loss.goes_on_anyhow().await;
    assert!(guard.is_held());
}

// Section: guarantees.md#one-holder-at-a-time
#[tokio::test]
async fn the_key_is_taken_over() {
    let mut scene = Scene::new().await;
    let loss = scene
        .lose(async |scene| {
            let owner = RedisServer::owner_key(&scene.key);
            let take = ["SET", &owner, "foreign", "PX", "60000"];
            scene.server.cmd(&take).await;
        })
        .await;
    // Whatever our side releases, it has released then.
    within(SOON, scene.ours.shutdown()).await;
    let owner = scene.server.owner(&scene.key).await;
    assert_eq!(owner.as_deref(), Some("foreign"), "a foreign key was lost");
    assert!(
        !loss.others.is_finished(),
        "a foreign key was not respected"
    );

    let owner = RedisServer::owner_key(&scene.key);
    scene.server.cmd(&["DEL", &owner]).await;
    loss.goes_on().await;
}

// Section: guarantees.md#one-holder-at-a-time
#[tokio::test]
async fn a_release_deletes_no_foreign_key() {
    let scene = Scene::new().await;
    let owner = RedisServer::owner_key(&scene.key);
    for confirmed in [true, false] {
        let guard = scene.ours.lock(&scene.key).acquire().await;
        let guard = guard.expect("the lock is free");
        let take = ["SET", &owner, "foreign", "PX", "60000"];
        scene.server.cmd(&take).await;
        if confirmed {
            let released = within(SOON, guard.release_confirmed()).await;
            assert!(!released.expect("an answer"), "it was not ours");
        } else {
            drop(guard);
            // Comes after the release on the same connection.
            let contended = scene.ours.lock(&scene.key).wait(Duration::ZERO);
            let error = contended.acquire().await.expect_err("the lock is held");
            assert!(matches!(error, LockError::Contended { .. }), "{error}");
        }
        let value = scene.server.owner(&scene.key).await;
        assert_eq!(value.as_deref(), Some("foreign"));
        scene.server.cmd(&["DEL", &owner]).await;
    }
}

#[tokio::test]
async fn the_server_is_killed() {
    let mut scene = Scene::new().await;
    let loss = scene.lose(async |scene| scene.server.kill().await).await;
    scene.server.restart().await;
    loss.goes_on().await;
}

#[tokio::test]
async fn the_server_is_stopped() {
    let mut scene = Scene::new().await;
    let loss = scene.lose(async |scene| scene.server.stop()).await;
    scene.server.resume();
    loss.goes_on().await;
}

#[tokio::test]
async fn replies_are_swallowed() {
    let mut scene = Scene::new().await;
    let loss = scene.lose(async |scene| scene.proxy.replies().hold()).await;
    loss.goes_on().await;
}

#[tokio::test]
async fn requests_are_swallowed() {
    let mut scene = Scene::new().await;
    let loss = scene
        .lose(async |scene| scene.proxy.requests().hold())
        .await;
    loss.goes_on().await;
}

#[tokio::test]
async fn the_network_is_gone() {
    let mut scene = Scene::new().await;
    let loss = scene
        .lose(async |scene| {
            scene.proxy.refuse().await;
            scene.proxy.cut().await;
        })
        .await;
    loss.goes_on().await;
}

#[tokio::test]
async fn a_body_that_nothing_wakes_is_stopped() {
    let scene = Scene::new().await;
    let guard = scene.ours.lock(&scene.key).ttl(TTL).acquire().await;
    let guard = guard.expect("the lock is free");
    let fence = guard.fencing_token();
    scene.server.stop();
    // Both in tasks of their own, where nothing but the library wakes them.
    let guard = Arc::new(guard);
    let body = tokio::spawn({
        let guard = Arc::clone(&guard);
        async move { guard.hold(std::future::pending::<Infallible>()).await }
    });
    let lost = tokio::spawn(async move { guard.lost().await });
    let limit = TTL + Duration::from_secs(1);
    let outcome = within(limit, body).await.expect("no panic");
    scene.assert_lost(outcome, fence);
    within(limit, lost).await.expect("no panic");
}
