//! Standbys that take the place of their primaries, and what keeps a lock from being granted twice then.
//!
//! Section: postgres.md#failover

use std::time::Duration;

use lock_runtime::{LockConfig, LockError, LockGuard, LockManager};
use tests::{
    Fate, LONG, PostgresPair, PostgresServer, TIME_LIMIT, connect, eventually, queued, release,
    take, timed, within,
};
use tokio::time::sleep;

use crate::{are_served_in_order, is_quarantined, manager, waiter};

const TEST: &str = "tests/postgres";

/// The longest lease where locks are quarantined.
const LONGEST: Duration = Duration::from_secs(2);

/// A lock is granted that the standby does not hear of before it takes over.
async fn promoted_without_the_last_grant(
    pair: &mut PostgresPair,
    locks: &LockManager,
    ttl: Duration,
) -> Held {
    release(take(locks, "before", ttl).await).await;
    let standby = 1 - pair.place();
    let primary = pair.addresses()[pair.place()];
    let direct =
        connect(LockConfig::new(format!("postgres://postgres@{primary}/postgres")).unwrap());
    let direct = direct.await;
    pair.server_mut(standby).stop();
    // Else the standby would still find what its connection has delivered meanwhile.
    let connected = "SELECT pg_terminate_backend(pid) FROM pg_stat_replication";
    let is_alone = async || pair.primary().cmd(connected).await.is_empty();
    eventually(TIME_LIMIT, is_alone).await;
    let guard = take(&direct, "key", ttl).await;
    pair.server_mut(1 - standby).kill().await;
    pair.server_mut(standby).resume();
    pair.fail_over(Fate::Killed).await;
    Held { guard, _by: direct }
}

struct Held {
    guard: LockGuard,
    _by: LockManager,
}

#[tokio::test]
async fn a_quarantine_keeps_a_promoted_standby_from_a_second_grant() {
    let Some(mut pair) = PostgresPair::start(TEST).await else {
        return;
    };
    let config = || {
        let config = LockConfig::new(pair.url()).unwrap().quarantine(LONGEST);
        config
            .ttl(LONGEST)
            .unavailable_wait_forever()
            .connect_timeout(TIME_LIMIT)
    };
    let config = config();
    let locks = connect(config.clone()).await;
    let Held { guard, .. } = promoted_without_the_last_grant(&mut pair, &locks, LONGEST).await;
    let others = connect(config).await;
    is_quarantined(&others).await;
    let (took, next) = timed(others.lock("key").wait_forever().acquire()).await;
    assert!(!guard.is_held(), "two holders");
    assert!(took < LONGEST + Duration::from_secs(2), "{took:?}");
    release(next.unwrap()).await;
    // It is noticed once.
    let again = locks.lock("key").wait(TIME_LIMIT).acquire();
    release(within(TIME_LIMIT, again).await.unwrap()).await;
}

/// What the quarantine is for, and a check of the test above.
#[tokio::test]
async fn without_a_quarantine_a_promoted_standby_grants_what_it_has_not_heard_of() {
    let Some(mut pair) = PostgresPair::start(TEST).await else {
        return;
    };
    let locks = manager(&pair.url()).await;
    let Held { guard, .. } = promoted_without_the_last_grant(&mut pair, &locks, LONG).await;
    let next = locks.lock("key").ttl(LONG).wait(TIME_LIMIT).acquire();
    let next = within(TIME_LIMIT, next).await.unwrap();
    assert!(guard.is_held() && next.is_held());
    // The resource that checks fences sees a difference all the same.
    assert!(next.fencing_token() > guard.fencing_token());
}

#[tokio::test]
async fn a_synchronous_standby_knows_every_grant() {
    let Some(mut pair) = PostgresPair::start_synchronous(TEST).await else {
        return;
    };
    let locks = manager(&pair.url()).await;
    for round in 0..3 {
        let key = format!("key-{round}");
        let guard = take(&locks, &key, LONG).await;
        pair.fail_over(Fate::Killed).await;
        let others = manager(&pair.url()).await;
        let tried = others.lock(&*key).try_once().acquire();
        match within(TIME_LIMIT, tried).await {
            Err(LockError::Contended { .. }) => {}
            other => panic!("{other:?}"),
        }
        assert!(guard.is_held());
        pair.mend().await;
        let released = within(TIME_LIMIT, guard.release_confirmed()).await;
        assert!(released.unwrap());
    }
}

#[tokio::test]
async fn positions_survive_a_switchover() {
    let Some(mut pair) = PostgresPair::start(TEST).await else {
        return;
    };
    let [ours, theirs] = [manager(&pair.url()).await, manager(&pair.url()).await];
    let guard = take(&ours, "key", LONG).await;
    let waiters = vec![
        waiter(&theirs).await,
        waiter(&ours).await,
        waiter(&theirs).await,
    ];
    pair.fail_over(Fate::ShutDown).await;
    for locks in [&ours, &theirs] {
        let request = locks.lock("other").wait_forever();
        release(within(TIME_LIMIT, request.acquire()).await.unwrap()).await;
    }
    assert!(guard.is_held());
    are_served_in_order(guard, waiters).await;
}

/// Whether a lock is held that both primaries are asked for: the standby was promoted, and the old primary lives on.
async fn granted_by_both(mut pair: PostgresPair) -> [Result<bool, LockError>; 2] {
    let old = format!(
        "postgres://postgres@{}/postgres",
        pair.addresses()[pair.place()]
    );
    let theirs = LockConfig::new(old).unwrap().connect_timeout(TIME_LIMIT);
    let theirs = connect(theirs.unavailable_wait(LONGEST)).await;
    // The standby may be promoted before it hears of the release: the lease ends soon by itself.
    release(take(&theirs, "key", LONGEST).await).await;
    pair.fail_over(Fate::LeftAlive).await;
    // The new primary waits for a standby too, if the old one does.
    let _standby = pair.primary().standby().await;
    let new = format!(
        "postgres://postgres@{}/postgres",
        pair.addresses()[pair.place()]
    );
    let ours = manager(&new).await;
    let mut grants = [&ours, &theirs].map(|locks| {
        let lock = locks.lock("key").ttl(LONG).wait_forever();
        tokio::spawn(lock.acquire())
    });
    let [first, second] = &mut grants;
    let grants = tokio::join!(within(TIME_LIMIT, first), within(TIME_LIMIT, second));
    let grants = [grants.0.unwrap(), grants.1.unwrap()];
    grants.map(|grant| grant.map(|guard| guard.is_held()))
}

// Section: postgres.md#what-it-promises
#[tokio::test]
async fn an_old_primary_that_waits_for_its_standby_grants_nothing() {
    let Some(pair) = PostgresPair::start_synchronous(TEST).await else {
        return;
    };
    match granted_by_both(pair).await {
        [Ok(true), Err(LockError::Unavailable { .. })] => {}
        other => panic!("{other:?}"),
    }
}

/// What it waits for, and a check of the test above.
#[tokio::test]
async fn an_old_primary_that_waits_for_nobody_grants_what_the_new_one_grants() {
    let Some(pair) = PostgresPair::start(TEST).await else {
        return;
    };
    let grants = granted_by_both(pair).await;
    assert!(matches!(grants, [Ok(true), Ok(true)]), "{grants:?}");
}

/// PostgreSQL answers that the commit was a success, and warns that the standby may not have it.
#[tokio::test]
async fn a_grant_whose_wait_for_the_standby_was_cancelled_does_not_count() {
    let Some(mut pair) = PostgresPair::start_synchronous(TEST).await else {
        return;
    };
    let locks = manager(&pair.url()).await;
    release(take(&locks, "key", LONG).await).await;
    let standby = 1 - pair.place();
    pair.server_mut(standby).stop();
    let acquire = tokio::spawn(locks.lock("key").ttl(LONG).wait_forever().acquire());
    let cancel = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    let mut cancelled = 0;
    while cancelled < 5 {
        // The answer of this statement itself waits for no standby.
        cancelled += pair.primary().cmd(cancel).await.len();
        sleep(Duration::from_millis(20)).await;
    }
    assert!(
        !acquire.is_finished(),
        "granted, and the standby does not know"
    );
    pair.server_mut(standby).resume();
    let guard = within(TIME_LIMIT, acquire).await.unwrap().unwrap();
    pair.fail_over(Fate::Killed).await;
    let others = manager(&pair.url()).await;
    let tried = others.lock("key").try_once().acquire();
    let error = within(TIME_LIMIT, tried).await.unwrap_err();
    assert!(matches!(error, LockError::Contended { .. }), "{error}");
    assert!(guard.is_held());
}

/// A hand-over waits for no standby: the waiter has to, when it confirms it.
#[tokio::test]
async fn a_lock_that_is_handed_over_counts_when_the_standby_has_it() {
    let Some(mut pair) = PostgresPair::start_synchronous(TEST).await else {
        return;
    };
    let [ours, theirs] = [manager(&pair.url()).await, manager(&pair.url()).await];
    let guard = take(&theirs, "key", LONG).await;
    let next = tokio::spawn(waiter(&ours).await);
    let standby = 1 - pair.place();
    pair.server_mut(standby).stop();
    release(guard).await;
    sleep(Duration::from_millis(700)).await;
    assert!(
        !next.is_finished(),
        "granted, and the standby does not know"
    );
    pair.server_mut(standby).resume();
    release(within(TIME_LIMIT, next).await.unwrap().unwrap()).await;
}

/// Changes a setting of a running server.
async fn set(server: &PostgresServer, name: &str, value: &str) {
    let set = format!("ALTER SYSTEM SET {name} = '{value}'");
    server.cmd(&set).await;
    server.cmd("SELECT pg_reload_conf()").await;
    let is_set = async || server.cmd(&format!("SHOW {name}")).await == [value];
    eventually(TIME_LIMIT, is_set).await;
}

/// A server with a synchronous standby, and a manager that depends on it and has had a lock.
async fn depending() -> Option<(PostgresServer, PostgresServer, LockManager)> {
    let server = PostgresServer::start(TEST).await?;
    let standby = server.standby().await;
    set(&server, "synchronous_standby_names", "*").await;
    let config = LockConfig::new(format!("{}?replicas=1", server.url())).unwrap();
    let locks = connect(config.connect_timeout(TIME_LIMIT)).await;
    release(take(&locks, "key", LONG).await).await;
    Some((server, standby, locks))
}

async fn is_usable_again(locks: &LockManager) {
    let usable = async || {
        let again = locks.lock("key").wait(Duration::from_secs(1)).acquire();
        again.await.is_ok()
    };
    eventually(TIME_LIMIT, usable).await;
}

/// As tools do when a standby has failed, so that others can go on writing.
#[tokio::test]
async fn nothing_is_granted_once_the_server_waits_for_no_standby_any_more() {
    let Some((server, _standby, locks)) = depending().await else {
        return;
    };
    set(&server, "synchronous_standby_names", "").await;
    let tried = locks.lock("key").wait(Duration::from_secs(1)).acquire();
    match within(TIME_LIMIT, tried).await {
        Err(error) => assert!(error.to_string().contains("standbys"), "{error}"),
        Ok(guard) => panic!("granted by one server alone: {guard:?}"),
    }
    // It is found again without a new manager.
    set(&server, "synchronous_standby_names", "*").await;
    is_usable_again(&locks).await;
}

#[tokio::test]
async fn waiters_keep_waiting_while_a_server_has_too_few_standbys() {
    let Some((server, _standby, others)) = depending().await else {
        return;
    };
    let config = LockConfig::new(format!("{}?replicas=1", server.url())).unwrap();
    let locks = connect(config.unavailable_wait_forever()).await;
    let guard = take(&others, "key", LONG).await;
    let waiter = queued(&locks, locks.lock("key").wait_forever()).await;
    let waiter = tokio::spawn(waiter);
    set(&server, "synchronous_standby_names", "").await;
    drop(guard);
    let has_seen = async || {
        let error = locks.health().await.last_error;
        error.is_some_and(|it| it.message.contains("waits for 0 standbys"))
    };
    eventually(TIME_LIMIT, has_seen).await;
    set(&server, "synchronous_standby_names", "*").await;
    release(within(TIME_LIMIT, waiter).await.unwrap().unwrap()).await;
}

/// A commit that waits for a standby goes on as if that had answered once the server waits for none.
#[tokio::test]
async fn a_grant_does_not_count_if_the_server_stops_waiting_meanwhile() {
    let Some((server, mut standby, locks)) = depending().await else {
        return;
    };
    standby.stop();
    let acquire = tokio::spawn(locks.lock("key").ttl(LONG).wait(2 * LONG).acquire());
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    eventually(TIME_LIMIT, async || server.cmd(waits).await == ["1"]).await;
    set(&server, "synchronous_standby_names", "").await;
    match within(TIME_LIMIT, acquire).await.unwrap() {
        Err(error) => assert!(error.to_string().contains("standbys"), "{error}"),
        Ok(guard) => panic!("granted by one server alone: {guard:?}"),
    }
    standby.resume();
    set(&server, "synchronous_standby_names", "*").await;
    is_usable_again(&locks).await;
}

/// The same with another setting, which counts for connections that are open.
#[tokio::test]
async fn grants_wait_for_the_standby_although_commits_need_not_any_more() {
    let Some((server, mut standby, locks)) = depending().await else {
        return;
    };
    set(&server, "synchronous_commit", "local").await;
    standby.stop();
    for _ in 0..3 {
        let tried = locks.lock("key").wait(Duration::from_secs(1)).acquire();
        let tried = within(TIME_LIMIT, tried).await;
        assert!(tried.is_err(), "granted by one server alone: {tried:?}");
    }
    standby.resume();
    set(&server, "synchronous_commit", "on").await;
    is_usable_again(&locks).await;
}
