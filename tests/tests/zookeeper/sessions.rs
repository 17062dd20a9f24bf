//! The session, on which all locks of a manager stand: how long it lasts, and what its end means.
//!
//! Section: zookeeper.md#what-failures-do

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use lock_runtime::{Clock, LockConfig, LockError};
use tests::{
    LONG, Proxy, Pulse, TIME_LIMIT, Verdict, Worker, connect, queued, release, take_turn, within,
};

use crate::{manager, server};

const SESSION: Duration = Duration::from_secs(2);

#[tokio::test]
async fn a_manager_connects_where_its_first_connection_breaks_before_the_session_is_confirmed() {
    let Some(server) = server().await else { return };
    for verdict in [Verdict::BreakAfter, Verdict::BreakBefore] {
        let proxy = Proxy::start(server.addr());
        let broke = Arc::new(AtomicBool::new(false));
        let broken = Arc::clone(&broke);
        proxy.requests().inspect(move |bytes| {
            let path = b"/unconfirmed/lock.sessions/";
            let creates = bytes.windows(path.len()).any(|it| it == path);
            if creates && !broken.swap(true, Ordering::SeqCst) {
                verdict
            } else {
                Verdict::Pass
            }
        });
        let url = format!("zookeeper://{}/unconfirmed", proxy.addr());
        let locks = manager(&url, LONG).await;
        assert!(broke.load(Ordering::SeqCst), "{verdict:?}");
        take_turn(&locks, "key").await;
    }
}

#[tokio::test]
async fn a_lease_lasts_as_long_as_the_server_grants() {
    let Some(server) = server().await else { return };
    // The server grants sessions of 0.2 s to 60 s.
    for (asked, granted) in [(SESSION, SESSION), (100 * LONG, LONG)] {
        let locks = manager(&server.url("granted"), asked).await;
        for ttl in [SESSION / 4, asked] {
            let guard = locks.lock("key").ttl(ttl).acquire().await.unwrap();
            let remaining = guard.remaining();
            assert!(remaining <= granted, "{remaining:?} of {granted:?}");
            assert!(remaining > granted / 4, "{remaining:?} of {granted:?}");
            release(guard).await;
        }
    }
}

#[tokio::test]
async fn a_fixed_lease_may_be_longer_than_the_session() {
    let Some(server) = server().await else { return };
    let locks = manager(&server.url("fixed"), SESSION).await;
    let start = Instant::now();
    let guard = locks.lock("key").ttl(2 * SESSION).renew(false);
    let guard = guard.acquire().await.unwrap();
    within(TIME_LIMIT, guard.lost()).await;
    let held = start.elapsed();
    assert!(held > SESSION + SESSION / 2, "held for {held:?}");
    assert!(held < 2 * SESSION + SESSION / 2, "held for {held:?}");
}

#[tokio::test]
async fn a_fixed_lease_lasts_for_its_ttl_however_old_the_heartbeat_is_that_confirms_it() {
    let Some(server) = server().await else { return };
    let locks = manager(&server.url("old"), SESSION).await;
    let other = locks.lock("other").acquire().await.unwrap();
    tests::eventually(TIME_LIMIT, async || other.remaining() < SESSION / 4 * 3).await;
    let start = Instant::now();
    let guard = locks.lock("key").ttl(SESSION).renew(false);
    let guard = guard.acquire().await.unwrap();
    within(TIME_LIMIT, guard.lost()).await;
    let held = start.elapsed();
    assert!(held >= SESSION / 10 * 9, "held for {held:?}");
}

#[tokio::test]
async fn all_locks_are_lost_when_the_server_ends_the_session() {
    let Some(server) = server().await else { return };
    // No heartbeat is sent while our clock stands still.
    let clock = Clock::manual();
    let config = LockConfig::new(server.url("expired")).unwrap();
    let config = config.ttl(Duration::from_secs(1)).clock(clock.clone());
    let locks = connect(config).await;
    let guards = [
        locks.lock("one").acquire().await.unwrap(),
        locks.lock("two").read().acquire().await.unwrap(),
    ];
    let others = manager(&server.url("expired"), LONG).await;
    let next = queued(&others, others.lock("one").wait_forever()).await;
    for guard in &guards {
        within(TIME_LIMIT, guard.lost()).await;
        assert!(!guard.is_held());
    }
    let next = within(TIME_LIMIT, next).await.unwrap();
    assert!(next.fencing_token() > guards[0].fencing_token());
    release(next).await;
    // The manager goes on with another session after a pause.
    let passes = tokio::spawn(pass(clock));
    take_turn(&locks, "one").await;
    passes.abort();
}

#[tokio::test]
async fn a_session_that_is_given_up_keeps_its_locks_until_no_poll_may_run_any_more() {
    let Some(server) = server().await else { return };
    let clock = Clock::manual();
    let config = LockConfig::new(server.url("given_up")).unwrap();
    let config = config.ttl(Duration::from_secs(60)).clock(clock.clone());
    let locks = connect(config).await;
    let guard = locks.lock("key").acquire().await.unwrap();
    let others = manager(&server.url("given_up"), LONG).await;
    let mut next = queued(&others, others.lock("key").wait_forever()).await;
    clock.advance(guard.remaining());
    within(TIME_LIMIT, guard.lost()).await;
    let early = tokio::time::timeout(Duration::from_millis(300), &mut next).await;
    assert!(early.is_err(), "a poll that has begun before may still run");
    // Long before the server ends the session by itself.
    clock.advance(Duration::from_secs(3));
    release(within(Duration::from_secs(20), next).await.unwrap()).await;
}

#[tokio::test]
async fn a_waiter_goes_on_in_a_new_session() {
    let Some(server) = server().await else { return };
    let clock = Clock::manual();
    let config = LockConfig::new(server.url("waits")).unwrap();
    let config = config.ttl(Duration::from_secs(1)).clock(clock.clone());
    let others = manager(&server.url("waits"), LONG).await;
    let guard = others.lock("key").acquire().await.unwrap();
    let locks = connect(config).await;
    let waiter = queued(&locks, locks.lock("key").wait_forever()).await;
    let mut peer = server.peer().await;
    let before = peer.children("/waits/lock/key").await;
    let names = async || server.peer().await.children("/waits/lock/key").await;
    tests::eventually(TIME_LIMIT, async || names().await.len() == 1).await;
    // The manager asks for another session after a pause.
    let passes = tokio::spawn(pass(clock));
    tests::eventually(TIME_LIMIT, async || {
        let names = names().await;
        names.len() == 2 && names != before
    })
    .await;
    release(guard).await;
    assert!(within(TIME_LIMIT, waiter).await.unwrap().is_held());
    passes.abort();
}

/// Lets a clock go on.
async fn pass(clock: Clock) {
    loop {
        clock.advance(Duration::from_millis(20));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_crash_costs_one_session() {
    let Some(server) = server().await else { return };
    let url = format!("{}?ttl=2s", server.url("crash"));
    let worker = ["holder", &url, "exclusive", "key", "2000"];
    let mut worker = Worker::spawn(env!("CARGO_BIN_EXE_worker"), worker).await;
    let fence = worker.fence().await;
    let locks = connect(&url).await;
    let next = queued(&locks, locks.lock("key").wait_forever()).await;
    worker.kill().await;
    let killed = Instant::now();
    let next = within(TIME_LIMIT, next).await.unwrap();
    let took = killed.elapsed();
    assert!(next.fencing_token().get() > fence);
    assert!(
        took <= SESSION + Duration::from_millis(1_100),
        "after {took:?}"
    );
}

#[tokio::test]
async fn a_process_that_was_stopped_past_its_session_does_not_go_on() {
    let Some(server) = server().await else { return };
    let url = format!("{}?ttl=1s", server.url("stopped"));
    let worker = ["paused-process", &url, "key", "1000"];
    let mut worker = Worker::spawn(env!("CARGO_BIN_EXE_worker"), worker).await;
    let locks = connect(&url).await;
    for _ in 0..3 {
        let fence = worker.take().await;
        worker.pause();
        let next = within(TIME_LIMIT, locks.lock("key").wait_forever().acquire()).await;
        let next = next.unwrap();
        let resumed = tests::boottime().as_nanos();
        worker.resume();
        let polls = worker.polls_until_lost(fence).await;
        assert!(polls.iter().all(|poll| *poll < resumed), "the body ran on");
        assert!(next.is_held());
        release(next).await;
    }
}

#[tokio::test]
async fn a_server_that_stops_answering_costs_the_locks_and_their_bodies_end() {
    let Some(mut server) = server().await else {
        return;
    };
    let locks = manager(&server.url("silent"), SESSION).await;
    let guard = locks.lock("key").acquire().await.unwrap();
    let pulse = Pulse::default();
    let body = tokio::spawn({
        let pulse = pulse.clone();
        async move { guard.hold(pulse.beat(&guard)).await }
    });
    within(TIME_LIMIT, pulse.reaches(5)).await;
    server.stop();
    let outcome = within(SESSION + Duration::from_secs(1), body).await;
    assert!(matches!(outcome.unwrap(), Err(LockError::Lost { .. })));
    assert_eq!(pulse.polls().late, 0);
    let busy = locks.lock("key").wait(Duration::ZERO).acquire();
    let error = within(TIME_LIMIT, busy).await.unwrap_err();
    assert!(matches!(error, LockError::Unavailable { .. }), "{error}");
    assert!(!locks.health().await.connected);
    server.resume();
    server.restart().await;
    release(
        within(TIME_LIMIT, locks.lock("key").wait_forever().acquire())
            .await
            .unwrap(),
    )
    .await;
    assert!(locks.health().await.connected);
}
