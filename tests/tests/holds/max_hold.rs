//! `max_hold` and `renew = false`: the lease ends then, the body with it, and the lock goes on.
//!
//! Section: guarantees.md#how-long-it-is-held

use std::{
    pin::pin,
    time::{Duration, Instant},
};

use lock_runtime::{Clock, LockConfig, LockError, distributed_lock};
use tests::{
    LONG, Pulse, RedisServer, Store, TIME_LIMIT, connect, eventually, on_every_store, poll_once,
    queued, release, settled, timed, unique, within,
};

on_every_store! {
    the_body_is_stopped_then_and_the_lock_is_free_at_once [fencing],
    a_shorter_body_notices_nothing,
    it_holds_for_those_who_share [permits],
    it_holds_for_several_keys [several_keys],
    an_annotated_function_is_stopped,
    a_fixed_lease_ends_at_its_ttl [read permits several_keys],
}

const MOST: Duration = Duration::from_millis(700);

/// What a busy machine may take to stop a body, and to hand over: far below any lease that would have to end.
const SOON: Duration = Duration::from_secs(5);

async fn the_body_is_stopped_then_and_the_lock_is_free_at_once(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let start = Instant::now();
    let request = locks.lock("key").ttl(LONG).max_hold(MOST);
    let guard = within(TIME_LIMIT, request.acquire()).await.unwrap();
    assert!(guard.remaining() <= MOST);
    let next = queued(&others, others.lock("key").ttl(LONG).wait_forever()).await;
    let pulse = Pulse::default();
    let outcome = within(TIME_LIMIT, guard.hold(pulse.beat(&guard))).await;
    let stopped = start.elapsed();
    let Err(error) = outcome;
    assert!(matches!(error, LockError::Lost { .. }), "{error}");
    assert!((MOST..MOST + SOON).contains(&stopped), "{stopped:?}");
    assert_eq!(pulse.polls().late, 0);
    // The guard still lives.
    let next = within(TIME_LIMIT, next).await.unwrap();
    let taken = start.elapsed();
    assert!(taken < MOST + SOON, "handed over after {taken:?}");
    assert!(next.fencing_token() > guard.fencing_token());
    assert!(!within(TIME_LIMIT, guard.release_confirmed()).await.unwrap());
    assert!(next.is_held());
    release(next).await;
    assert_eq!(store.traces().await, [""; 0]);
}

async fn a_shorter_body_notices_nothing(store: Store) {
    let locks = store.manager().await;
    let request = locks.lock("key").max_hold(LONG);
    let work = request.run(async |guard| {
        assert!(guard.is_held());
        "done"
    });
    assert_eq!(within(TIME_LIMIT, work).await.unwrap(), "done");
}

async fn it_holds_for_those_who_share(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let long = locks.lock("key").permits(2).ttl(LONG).acquire().await;
    let long = long.unwrap();
    let short = locks.lock("key").permits(2).ttl(LONG).max_hold(MOST);
    let short = short.acquire().await.unwrap();
    let next = others.lock("key").permits(2).ttl(LONG).wait_forever();
    let next = queued(&others, next).await;
    let (took, next) = timed(next).await;
    assert!(took < MOST + SOON, "handed over after {took:?}");
    assert!(!short.is_held());
    assert!(long.is_held() && next.unwrap().is_held());
}

async fn it_holds_for_several_keys(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let all = locks.lock_all(["a", "b"]).ttl(LONG).max_hold(MOST);
    let work = all.run(async |_| std::future::pending::<()>().await);
    let (took, outcome) = timed(work).await;
    assert!(matches!(outcome, Err(LockError::Lost { .. })));
    assert!(took < MOST + SOON, "stopped after {took:?}");
    for key in ["a", "b"] {
        let (took, guard) = timed(others.lock(key).acquire()).await;
        assert!(guard.is_ok());
        assert!(took < SOON, "free after {took:?}");
    }
}

#[distributed_lock(key = "key", max_hold = "300ms", ttl = "60s")]
async fn endless() -> Result<(), LockError> {
    std::future::pending().await
}

async fn an_annotated_function_is_stopped(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let (took, outcome) = timed(locks.scope(endless())).await;
    assert!(matches!(outcome, Err(LockError::Lost { .. })));
    assert!(took < Duration::from_millis(300) + SOON, "{took:?}");
    let (took, guard) = timed(others.lock("key").acquire()).await;
    assert!(guard.is_ok());
    assert!(took < SOON, "free after {took:?}");
}

async fn a_fixed_lease_ends_at_its_ttl(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    for kind in ["exclusive", "reader", "permits:2", "several"] {
        let kind = tests::kinds::Kind::parse(kind);
        let start = Instant::now();
        let request = kind.request(&locks, "key").ttl(MOST).renew(false);
        let request = request.wait(TIME_LIMIT);
        let work = request.run(async |_| std::future::pending::<()>().await);
        let outcome = within(TIME_LIMIT, work).await;
        assert!(matches!(outcome, Err(LockError::Lost { .. })));
        let stopped = start.elapsed();
        assert!(stopped < MOST + SOON, "{kind:?}: {stopped:?}");
        for name in kind.names("key") {
            let (took, guard) = timed(others.lock(name).acquire()).await;
            assert!(took < SOON, "{kind:?}: free after {took:?}");
            release(guard.unwrap()).await;
        }
    }
}

/// Time that stands still shows the moment itself.
#[tokio::test]
async fn no_poll_of_a_body_starts_after_it() {
    let clock = Clock::manual();
    let config = LockConfig::new("memory:").unwrap().clock(clock.clone());
    let locks = connect(config).await;
    let request = locks.lock("key").ttl(LONG).max_hold(MOST);
    let guard = within(TIME_LIMIT, request.acquire()).await.unwrap();
    let mut hold = Box::pin(guard.hold(std::future::pending::<()>()));
    clock.advance(MOST / 10 * 9);
    assert!(poll_once(&mut hold).await.is_pending());
    clock.advance(MOST / 10);
    assert!(poll_once(&mut hold).await.is_ready());
    assert!(!guard.is_held());
}

#[tokio::test]
async fn there_are_no_renewals_that_it_has_no_use_for() {
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    // It ends within the first lease.
    let request = locks.lock("key").ttl(2 * MOST).max_hold(MOST);
    let calls = server.calls("evalsha").await;
    let work = request.run(async |_| std::future::pending::<()>().await);
    assert!(within(TIME_LIMIT, work).await.is_err());
    within(TIME_LIMIT, locks.shutdown()).await;
    let calls = server.calls("evalsha").await - calls;
    assert_eq!(calls, 2, "one to take it and one to let it go");
}

#[tokio::test]
async fn the_lock_is_free_then_although_nobody_polls_the_body() {
    let clock = Clock::manual();
    let url = format!("memory:{}", unique("free"));
    let config = LockConfig::new(&*url).unwrap().clock(clock.clone());
    let [locks, others] = [connect(config.clone()).await, connect(config).await];
    let mut call = pin!(locks.scope(endless()));
    assert!(poll_once(&mut call).await.is_pending());
    eventually(TIME_LIMIT, async || {
        others.status("key").await.is_ok_and(|it| it.is_held())
    })
    .await;
    assert!(poll_once(&mut call).await.is_pending());
    clock.advance(Duration::from_millis(300));
    settled(&locks).await;
    let next = others.lock("key").wait(Duration::ZERO).acquire();
    assert!(within(TIME_LIMIT, next).await.unwrap().is_held());
}
