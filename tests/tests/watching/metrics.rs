//! The metrics of whole acquisitions, with their labels.
//!
//! Section: guarantees.md#watching-a-lock

use std::time::Duration;

use lock_runtime::{Clock, LockConfig, LockError, LockManager, distributed_lock};
use tests::{LONG, Store, TIME_LIMIT, on_every_store, queued};
use tests::{RedisServer, connect, eventually, release, take, unique, within};

use crate::meter::{measure, value};

/// How long a lock is held.
const WHILE: Duration = Duration::from_millis(60);

/// The labels of one test's locks, which no other test has.
struct Labels(&'static str);

impl Labels {
    fn new(template: &str) -> Self {
        measure();
        Self(unique(template).leak())
    }

    fn name(&self, metric: &str) -> String {
        format!("{metric} template={} function=", self.0)
    }

    /// How often something was recorded, with this kind.
    fn count(&self, metric: &str, kind: &str) -> u64 {
        value(&format!("{} kind={kind}", self.name(metric))).count
    }

    fn sum(&self, metric: &str) -> f64 {
        value(&self.name(metric)).sum
    }

    /// Returns when the metric has the sum.
    async fn reaches(&self, metric: &str, sum: f64) {
        let reached = async || (self.sum(metric) - sum).abs() < 0.5;
        eventually(TIME_LIMIT, reached).await;
    }
}

async fn a_lock_is_counted_from_the_request_to_the_release(store: Store) {
    let labels = Labels::new("whole");
    let (locks, others) = (store.manager().await, store.manager().await);
    let key = unique("whole");
    let ask = |locks: &LockManager| locks.lock(&key).template(labels.0).ttl(LONG);
    let held = within(TIME_LIMIT, ask(&locks).acquire()).await.unwrap();
    let waiter = queued(&others, ask(&others)).await;
    labels.reaches("lock_held", 1.0).await;
    labels.reaches("lock_waiting", 1.0).await;
    tokio::time::sleep(WHILE).await;
    release(held).await;
    let held = within(TIME_LIMIT, waiter).await.unwrap();
    // Alerts see the first one of what begins at zero.
    for rare in ["lock_lost_total", "lock_release_failures_total"] {
        assert_eq!(value(&labels.name(rare)).count, 1, "{rare}");
    }
    assert_eq!(labels.count("lock_outcomes_total", "unavailable"), 1);
    labels.reaches("lock_waiting", 0.0).await;
    release(held).await;
    labels.reaches("lock_held", 0.0).await;

    labels.reaches("lock_attempts_total", 2.0).await;
    assert_eq!(labels.count("lock_outcomes_total", "granted"), 2);
    assert_eq!(labels.count("lock_wait_seconds", "granted"), 2);
    let times = value(&labels.name("lock_hold_seconds"));
    assert_eq!(times.count, 2);
    assert!(
        (0.06..20.0).contains(&times.sum),
        "{times:?}: these are seconds"
    );
    assert_eq!(value(&labels.name("lock_handover_seconds")).count, 2);
}

async fn what_is_not_granted_is_counted_by_its_kind(store: Store) {
    let labels = Labels::new("kinds");
    let (locks, others) = (store.manager().await, store.manager().await);
    let key = unique("kinds");
    let held = within(TIME_LIMIT, locks.lock(&key).ttl(LONG).acquire())
        .await
        .unwrap();
    let ask = || others.lock(&key).template(labels.0).ttl(LONG);
    within(TIME_LIMIT, ask().try_once().acquire())
        .await
        .unwrap_err();
    drop(queued(&others, ask()).await);
    let waiter = queued(&others, ask()).await;
    others.shutdown().await;
    assert!(matches!(
        within(TIME_LIMIT, waiter).await,
        Err(LockError::ShutDown)
    ));
    for kind in ["contended", "cancelled", "shut_down"] {
        assert_eq!(labels.count("lock_outcomes_total", kind), 1, "{kind}");
    }
    labels.reaches("lock_waiting", 0.0).await;
    assert!(labels.sum("lock_held").abs() < 0.5);
    release(held).await;
}

async fn a_lease_is_counted_when_it_is_renewed_and_when_it_is_lost(store: Store) {
    let labels = Labels::new("renewed");
    // Where locks share a lease, it is the manager's ttl that counts.
    let locks = connect(store.config().ttl(Duration::from_secs(2))).await;
    let others = store.manager().await;
    let key = unique("renewed");
    let request = locks.lock(&key).template(labels.0);
    let held = within(TIME_LIMIT, request.ttl(Duration::from_secs(1)).acquire())
        .await
        .unwrap();
    labels.reaches("lock_renewals_total", 1.0).await;
    others.force_release(&key).await.unwrap();
    within(TIME_LIMIT, held.lost()).await;
    labels.reaches("lock_lost_total", 1.0).await;
    labels.reaches("lock_held", 0.0).await;
}

async fn a_lease_that_ends_at_its_max_hold_is_not_counted_as_lost(store: Store) {
    let labels = Labels::new("limited");
    let locks = store.manager().await;
    let key = unique("limited");
    let request = locks.lock(&key).template(labels.0).ttl(LONG);
    let held = within(TIME_LIMIT, request.max_hold(WHILE).acquire())
        .await
        .unwrap();
    within(TIME_LIMIT, held.lost()).await;
    labels.reaches("lock_limited_total", 1.0).await;
    labels.reaches("lock_held", 0.0).await;
    assert!(labels.sum("lock_lost_total") < 0.5);
}

/// No work has begun, and nobody has to look.
#[tokio::test]
async fn keys_that_are_lost_while_others_are_waited_for_are_not_counted_as_lost() {
    let labels = Labels::new("begun");
    let clock = Clock::manual();
    let config = LockConfig::new("memory:").unwrap().clock(clock.clone());
    let locks = connect(config).await;
    let last = take(&locks, "c", 10 * LONG).await;
    let all = locks.lock_all(["a", "b", "c"]).template(labels.0);
    let all = tokio::spawn(all.ttl(LONG).wait_forever().acquire());
    let waits = async || locks.status("c").await.unwrap().waiting == 1;
    eventually(TIME_LIMIT, waits).await;
    // As if the process had been stopped.
    clock.advance(2 * LONG);
    // Two keys were taken before, and are taken anew.
    let anew = async || labels.count("lock_outcomes_total", "granted") == 4;
    eventually(TIME_LIMIT, anew).await;
    release(last).await;
    let all = within(TIME_LIMIT, all).await.unwrap().unwrap();
    assert!(labels.sum("lock_lost_total") < 0.5);
    release(all).await;
    labels.reaches("lock_held", 0.0).await;
}

#[distributed_lock(key = ["annotated:{name}", "beside:{name}"], manager = locks)]
async fn annotated(locks: &LockManager, name: &str) -> Result<(), LockError> {
    Ok(())
}

async fn values_in_a_key_make_no_new_labels(store: Store) {
    measure();
    let locks = store.manager().await;
    let labels = "template=annotated:{name}, beside:{name} function=watching::metrics::annotated";
    let attempts = || value(&format!("lock_attempts_total {labels}")).count;
    let before = attempts();
    for name in ["a", "b", "c"] {
        within(TIME_LIMIT, annotated(&locks, name)).await.unwrap();
    }
    assert!(attempts() >= before + 6, "two keys, three times");
}

on_every_store! {
    a_lock_is_counted_from_the_request_to_the_release,
    what_is_not_granted_is_counted_by_its_kind,
    a_lease_is_counted_when_it_is_renewed_and_when_it_is_lost,
    a_lease_that_ends_at_its_max_hold_is_not_counted_as_lost,
    values_in_a_key_make_no_new_labels,
}

#[tokio::test]
async fn a_renewal_that_comes_late_is_counted_as_late() {
    let labels = Labels::new("late");
    let clock = Clock::manual();
    let config = LockConfig::new("memory:").unwrap().clock(clock.clone());
    let locks = LockManager::connect(config).await.unwrap();
    let request = locks.lock("late").template(labels.0);
    let held = within(TIME_LIMIT, request.ttl(Duration::from_secs(10)).acquire())
        .await
        .unwrap();
    for (pause, late) in [(4, 0.0), (8, 1.0)] {
        let before = labels.sum("lock_renewals_total");
        clock.advance(Duration::from_secs(pause));
        labels.reaches("lock_renewals_total", before + 1.0).await;
        labels.reaches("lock_renewals_late_total", late).await;
    }
    release(held).await;
}

#[tokio::test]
async fn a_server_that_is_gone_fails_renewals_and_releases() {
    let labels = Labels::new("failing");
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let key = unique("failing");
    let ask = || {
        locks
            .lock(&key)
            .template(labels.0)
            .ttl(Duration::from_secs(1))
    };
    let held = within(TIME_LIMIT, ask().acquire()).await.unwrap();
    drop(server);
    within(TIME_LIMIT, held.lost()).await;
    labels.reaches("lock_release_failures_total", 1.0).await;
    assert!(labels.sum("lock_renewal_failures_total") >= 1.0);
    labels.reaches("lock_held", 0.0).await;
}

#[tokio::test]
async fn connections_that_break_and_come_back_are_counted() {
    measure();
    let server = RedisServer::start().await;
    let count = |metric| value(metric).count;
    let (connects, disconnects) = (
        count("lock_connects_total"),
        count("lock_disconnects_total"),
    );
    let locks = connect(server.url()).await;
    server.kill_all_clients().await;
    eventually(TIME_LIMIT, async || {
        count("lock_connects_total") >= connects + 2
            && count("lock_disconnects_total") > disconnects
    })
    .await;
    release(take(&locks, &unique("again"), LONG).await).await;
}

#[tokio::test]
async fn the_driver_counts_its_turns() {
    measure();
    let locks = connect("memory:").await;
    release(take(&locks, &unique("turn"), LONG).await).await;
    let (turns, queue) = (
        value("lock_driver_turn_seconds"),
        value("lock_driver_queue_length"),
    );
    assert!(turns.count > 0 && turns.sum > 0.0, "{turns:?}");
    assert!(queue.count > 0 && queue.sum >= 1.0, "{queue:?}");
}
