//! The events of whole acquisitions, with their fields.
//!
//! Section: guarantees.md#watching-a-lock

use std::time::Duration;

use lock_runtime::{LockError, LockManager, distributed_lock};
use tests::{LONG, Store, TIME_LIMIT, on_every_store, queued};
use tests::{Proxy, RedisServer, connect, release, take, take_turn, unique, within};
use tracing::Level;

use crate::recorder::{at_store, event, events, record};

/// How long a lock is held in vain.
const WHILE: Duration = Duration::from_millis(60);

#[distributed_lock(key = "{name}", ttl = "30s", manager = locks)]
async fn sell(locks: &LockManager, name: &str) -> Result<(), LockError> {
    tokio::time::sleep(WHILE).await;
    Ok(())
}

async fn a_call_tells_of_itself_in_numbers(store: Store) {
    record();
    let locks = store.manager().await;
    let key = unique("call");
    within(TIME_LIMIT, sell(&locks, &key)).await.unwrap();
    event(&key, "release").await;
    let events = events(&key);
    let names: Vec<_> = events.iter().map(|event| &*event.name).collect();
    assert_eq!(names, ["acquire", "grant", "release"]);
    let [acquire, grant, release] = &events[..] else {
        panic!("{events:?}");
    };
    for event in &events {
        assert_eq!(event.level, Level::DEBUG);
        assert_eq!(event.fields.get("function"), Some("watching::events::sell"));
        assert_eq!(event.fields.get("template"), Some("{name}"));
        assert_eq!(event.fields.get("id"), acquire.fields.get("id"));
    }
    assert_eq!(acquire.fields.number("ttl_ms"), 30_000);
    assert!(grant.fields.number("fencing_token") > 0);
    assert!(grant.fields.number("waited_ms") < 20_000);
    assert_eq!(release.fields.get("outcome"), Some("released"));
    let held = u128::from(release.fields.number("held_ms"));
    assert!((WHILE.as_millis()..20_000).contains(&held), "{held}");
    assert!(release.fields.number("took_ms") < 20_000);
}

async fn a_waiter_tells_how_long_it_has_waited(store: Store) {
    record();
    let (locks, others) = (store.manager().await, store.manager().await);
    let key = unique("waiter");
    let held = within(TIME_LIMIT, locks.lock(&key).ttl(LONG).acquire())
        .await
        .unwrap();
    let request = others
        .lock(&key)
        .template("waiter")
        .ttl(LONG)
        .wait_forever();
    let waiter = queued(&others, request).await;
    event(&key, "wait").await;
    tokio::time::sleep(WHILE).await;
    release(held).await;
    release(within(TIME_LIMIT, waiter).await.unwrap()).await;
    let second = |name: &str| {
        let of_template =
            |it: &crate::recorder::Sighting| it.fields.get("template") == Some("waiter");
        let mut found = events(&key).into_iter().filter(of_template);
        found.find(|it| it.name == name).expect("the event")
    };
    assert!(u128::from(second("grant").fields.number("waited_ms")) >= WHILE.as_millis());
    assert_eq!(second("release").fields.get("function"), None);
}

async fn a_refusal_has_its_kind_and_is_no_warning_where_it_was_expected(store: Store) {
    record();
    let (locks, others) = (store.manager().await, store.manager().await);
    let (tried, awaited) = (unique("tried"), unique("awaited"));
    for (key, wait, level) in [
        (&tried, Duration::ZERO, Level::DEBUG),
        (&awaited, WHILE, Level::INFO),
    ] {
        let held = within(TIME_LIMIT, locks.lock(key).ttl(LONG).acquire())
            .await
            .unwrap();
        let refused = within(TIME_LIMIT, others.lock(key).wait(wait).acquire()).await;
        assert_eq!(refused.unwrap_err().kind(), "contended");
        let refuse = event(key, "refuse").await;
        assert_eq!(
            (refuse.level, refuse.fields.get("kind")),
            (level, Some("contended"))
        );
        assert!(u128::from(refuse.fields.number("waited_ms")) >= wait.as_millis());
        release(held).await;
    }
}

async fn who_goes_away_withdraws(store: Store) {
    record();
    let (locks, others) = (store.manager().await, store.manager().await);
    let key = unique("gone");
    let held = within(TIME_LIMIT, locks.lock(&key).ttl(LONG).acquire())
        .await
        .unwrap();
    drop(queued(&others, others.lock(&key)).await);
    event(&key, "cancel").await;
    let left = event(&key, "release").await;
    assert_eq!(left.fields.get("outcome"), Some("withdrawn"));
    assert_eq!(left.fields.get("held_ms"), None);
    release(held).await;
}

// Section: guarantees.md#looking-at-a-lock
async fn a_revoked_lock_is_lost(store: Store) {
    record();
    let (locks, others) = (store.manager().await, store.manager().await);
    let key = unique("away");
    let held = within(TIME_LIMIT, locks.lock(&key).ttl(LONG).acquire())
        .await
        .unwrap();
    others.force_release(&key).await.unwrap();
    within(TIME_LIMIT, held.lost()).await;
    let revoked = event(&key, "revoke").await;
    assert_eq!(
        (revoked.level, revoked.fields.number("holders")),
        (Level::WARN, 1)
    );
    let loss = event(&key, "loss").await;
    assert_eq!(loss.level, Level::WARN);
    assert!(loss.fields.number("held_ms") < 20_000);
    let release = event(&key, "release").await;
    assert_eq!(release.fields.get("outcome"), Some("lost"));
}

async fn a_lock_that_is_held_for_as_long_as_it_may_is_not_lost(store: Store) {
    record();
    let locks = store.manager().await;
    let (bounded, fixed) = (unique("bounded"), unique("fixed"));
    for (key, request) in [
        (&bounded, locks.lock(&bounded).ttl(LONG).max_hold(WHILE)),
        (&fixed, locks.lock(&fixed).ttl(2 * WHILE).renew(false)),
    ] {
        let held = within(TIME_LIMIT, request.acquire()).await.unwrap();
        within(TIME_LIMIT, held.lost()).await;
        let limit = event(key, "limit").await;
        assert_eq!(limit.level, Level::INFO);
        assert!(limit.fields.number("held_ms") < 20_000);
        let release = event(key, "release").await;
        assert_eq!(release.fields.get("outcome"), Some("limited"));
        assert!(events(key).iter().all(|event| event.name != "loss"));
    }
}

async fn a_body_that_computes_past_its_deadline_overruns(store: Store) {
    record();
    let locks = store.manager().await;
    let key = unique("overrun");
    let request = locks.lock(&key).ttl(Duration::from_secs(1)).renew(false);
    let guard = within(TIME_LIMIT, request.acquire()).await.unwrap();
    let body = async {
        while guard.is_held() {
            std::thread::sleep(Duration::from_millis(1));
        }
        "computed"
    };
    let output = within(TIME_LIMIT, guard.hold(body)).await.unwrap();
    assert_eq!(output, "computed");
    let overrun = event(&key, "overrun").await;
    assert_eq!(overrun.level, Level::WARN);
    assert_eq!(
        overrun.fields.number("fencing_token"),
        guard.fencing_token().get()
    );
}

async fn the_limit_of_a_call_that_joins_is_reported_of_the_lock(store: Store) {
    record();
    let locks = store.manager().await;
    let key = unique("joined");
    let work = locks.lock(&key).ttl(LONG).run(async |_| {
        let inner = locks.lock(&key).reentrant().max_hold(WHILE);
        let inner = inner.acquire().await.unwrap();
        inner.hold(std::future::pending::<()>()).await.unwrap_err();
    });
    within(TIME_LIMIT, work).await.unwrap();
    let release = event(&key, "release").await;
    assert_eq!(release.fields.get("outcome"), Some("released"));
    let events = events(&key);
    let names: Vec<_> = events.iter().map(|event| &*event.name).collect();
    assert_eq!(names, ["acquire", "grant", "stop", "release"]);
    let id = events[0].fields.get("id");
    assert!(events.iter().all(|event| event.fields.get("id") == id));
}

on_every_store! {
    a_lock_that_is_held_for_as_long_as_it_may_is_not_lost,
    a_body_that_computes_past_its_deadline_overruns,
    the_limit_of_a_call_that_joins_is_reported_of_the_lock,
    a_call_tells_of_itself_in_numbers,
    a_waiter_tells_how_long_it_has_waited,
    a_refusal_has_its_kind_and_is_no_warning_where_it_was_expected,
    who_goes_away_withdraws,
    a_revoked_lock_is_lost,
}

#[tokio::test]
async fn a_release_whose_answer_is_lost_is_no_loss() {
    record();
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr());
    let locks = connect(proxy.url()).await;
    let key = unique("answer");
    let held = take(&locks, &key, LONG).await;
    proxy.replies().hold();
    held.release();
    within(TIME_LIMIT, proxy.replies().held()).await;
    proxy.cut().await;
    proxy.replies().pass();
    let release = event(&key, "release").await;
    assert_eq!(release.fields.get("outcome"), Some("absent"));
    assert!(events(&key).iter().all(|event| event.name != "loss"));
}

#[tokio::test]
async fn a_store_that_can_do_less_warns_once_when_it_is_connected() {
    record();
    let server = RedisServer::start().await;
    let locks = connect(server.url().replace("redis://", "redis+setnx://")).await;
    take_turn(&locks, "key").await;
    let events = at_store(&server.addr().to_string());
    let [event] = &events[..] else {
        panic!("{events:?}");
    };
    assert_eq!((&*event.name, event.level), ("weak store", Level::WARN));
    let without = event.fields.get("without").unwrap();
    for promise in ["fencing tokens", "queue", "readers", "permits", "clocks"] {
        assert!(without.contains(promise), "{without}");
    }
}
