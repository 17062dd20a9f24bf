//! A caller that is polled long after its lock was granted gets no lock that it has lost meanwhile.
//!
//! Section: guarantees.md#the-body-does-not-begin-without-the-lock

use std::{future::Future, pin::pin, time::Duration};

use lock_runtime::{Clock, LockConfig, LockError, LockManager, distributed_lock};
use tests::{
    LONG, RedisServer, TIME_LIMIT, connect, poll_once, queued, release, settled, take, unique,
    within,
};

#[tokio::test]
async fn the_caller_waits_for_the_lock_again() {
    let url = format!("memory:{}", unique("late"));
    let [locks, others] = [connect(&*url).await, connect(&*url).await];
    let first = take(&others, "key", LONG).await;
    let mut waiter = queued(&locks, locks.lock("key").ttl(LONG).wait_forever()).await;
    release(first).await;
    settled(&locks).await;
    assert_eq!(others.force_release("key").await.unwrap(), 1);
    settled(&locks).await;
    let next = take(&others, "key", LONG).await;
    assert!(poll_once(&mut waiter).await.is_pending());
    release(next).await;
    let guard = within(TIME_LIMIT, waiter).await.unwrap();
    assert!(guard.is_held());
}

const TTL: Duration = Duration::from_secs(10);
/// Longer than a ttl and a wait.
const LATE: Duration = Duration::from_secs(61);

/// Whose body would run to its end.
#[distributed_lock(key = "key", ttl = "10s", wait = "60s", on_lost = "notify", guard = lock)]
async fn patient() -> Result<(), LockError> {
    assert!(lock.is_held(), "the body began without its lock");
    Ok(())
}

#[distributed_lock(key = "key", ttl = "10s", wait = "0s", min_hold = "1h")]
async fn nightly() -> Result<(), LockError> {
    Ok(())
}

/// A server, and a manager whose clock can be moved.
struct Scene {
    server: RedisServer,
    locks: LockManager,
    clock: Clock,
}

impl Scene {
    async fn start() -> Self {
        let server = RedisServer::start().await;
        let clock = Clock::manual();
        let config = LockConfig::new(server.url()).unwrap();
        let locks = connect(config.clock(clock.clone())).await;
        Self {
            server,
            locks,
            clock,
        }
    }

    /// The call waits for the lock, and gets it while the process is suspended.
    async fn late_waiter<F: Future + Unpin>(&self, call: &mut F) {
        let first = take(&self.locks, "key", TTL).await;
        assert!(poll_once(call).await.is_pending());
        release(first).await;
        self.suspend().await;
    }

    /// The call asks for the lock, and gets it while the process is suspended.
    async fn late_try<F: Future + Unpin>(&self, call: &mut F) {
        // Its answer does not come within the poll.
        self.server.stop();
        assert!(poll_once(call).await.is_pending());
        self.server.resume();
        self.suspend().await;
    }

    /// The caller is polled before the manager has noticed anything.
    async fn suspend(&self) {
        settled(&self.locks).await;
        self.clock.advance(LATE);
    }
}

#[tokio::test]
async fn the_wait_is_over_for_whoever_is_polled_after_it() {
    let scene = Scene::start().await;
    let mut call = pin!(scene.locks.scope(patient()));
    scene.late_waiter(&mut call).await;
    let _next = take(&scene.locks, "key", TTL).await;
    let outcome = within(TIME_LIMIT, call).await;
    let Err(LockError::Contended { waited, holder, .. }) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(waited, LATE);
    assert!(holder.is_some());
}

#[tokio::test]
async fn a_lock_that_is_free_after_the_wait_is_taken() {
    let scene = Scene::start().await;
    let mut call = pin!(scene.locks.scope(patient()));
    scene.late_waiter(&mut call).await;
    within(TIME_LIMIT, call).await.unwrap();
}

#[tokio::test]
async fn a_try_is_made_once_more() {
    let scene = Scene::start().await;
    let mut call = pin!(scene.locks.scope(nightly()));
    scene.late_try(&mut call).await;
    within(TIME_LIMIT, call).await.unwrap();
}

#[tokio::test]
async fn somebody_who_is_late_again_and_again_gives_up() {
    let scene = Scene::start().await;
    let mut call = pin!(scene.locks.scope(nightly()));
    for _ in 0..2 {
        scene.late_try(&mut call).await;
    }
    let outcome = within(TIME_LIMIT, call).await;
    let Err(LockError::Contended { waited, .. }) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(waited, 2 * LATE);
}

#[tokio::test]
async fn a_late_adopter_has_no_ticket_any_more() {
    let scene = Scene::start().await;
    let guard = take(&scene.locks, "key", TTL).await;
    let ticket = guard.into_ticket(TTL).await.unwrap();
    let mut adoption = pin!(scene.locks.adopt(&ticket).ttl(TTL).acquire());
    scene.late_try(&mut adoption).await;
    let outcome = within(TIME_LIMIT, adoption).await;
    let Err(LockError::InvalidTicket { key, .. }) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(key, "key");
}
