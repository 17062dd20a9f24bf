//! What a member, or a proxy before it, limits, denies and answers too much of.

use std::sync::Arc;

use lock_runtime::inspect::Severity;
use lock_runtime::{LockConfig, LockError, LockManager};
use tests::{
    EtcdCluster, EtcdServer, Gateway, LONG, TIME_LIMIT, connect, eventually, queued, release, take,
    take_turn, within,
};
use tokio::{sync::Barrier, task::JoinSet};

use crate::{TTL, is_renewed};

/// Enough for whatever asks.
const STREAMS: u32 = 1_000;

// Section: etcd.md#what-it-promises
#[tokio::test]
async fn calls_wait_for_room_where_the_streams_of_a_connection_are_few() {
    const TASKS: usize = 300;
    let Some(server) = EtcdServer::start("few streams").await else {
        return;
    };
    let gateway = Gateway::start(server.addr(), 10);
    let locks = connect(gateway.url()).await;
    let all_hold = Arc::new(Barrier::new(TASKS));
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let (locks, all_hold) = (locks.clone(), Arc::clone(&all_hold));
        tasks.spawn(async move {
            let guard = take(&locks, &format!("key:{task}"), LONG).await;
            all_hold.wait().await;
            release(guard).await;
        });
    }
    within(3 * TIME_LIMIT, tasks.join_all()).await;
    // One, unless the machine was so busy that the member counted as silent.
    let connections = gateway.connections();
    assert!(connections < 5, "{connections} connections");
}

// Section: etcd.md#running-it
#[tokio::test]
async fn a_user_who_may_not_ask_about_the_cluster_takes_locks_all_the_same() {
    let Some(server) = EtcdServer::start("questions that are denied").await else {
        return;
    };
    let gateway = Gateway::start(server.addr(), STREAMS);
    for methods in [
        &["Maintenance/Status"][..],
        &["Cluster/MemberList"],
        &["Maintenance/Status", "Cluster/MemberList"],
    ] {
        gateway.pass();
        for method in methods {
            gateway.deny(method);
        }
        let locks = connect(gateway.url()).await;
        let guard = take(&locks, "key", TTL).await;
        is_renewed(&guard).await;
        release(guard).await;

        let findings = within(TIME_LIMIT, locks.diagnose()).await.unwrap();
        for finding in &findings {
            assert!(finding.severity < Severity::Error, "{finding:?}");
        }
        let found = |check| {
            let found = findings.iter().find(|it| it.check == check);
            found.map_or_else(String::new, |it| format!("{} {:?}", it.found, it.advice))
        };
        let denied = found("version").contains("permission denied");
        assert_eq!(
            denied,
            methods.contains(&"Maintenance/Status"),
            "{findings:?}"
        );
        let denied = found("members").contains("permission denied");
        assert_eq!(
            denied,
            methods.contains(&"Cluster/MemberList"),
            "{findings:?}"
        );
    }
}

// Section: etcd.md#running-it
#[tokio::test]
async fn a_lock_is_released_although_the_quota_is_used_up() {
    let quota = [("quota-backend-bytes", "1000000")];
    let Some(cluster) = EtcdCluster::start_limited("a quota", 1, &quota).await else {
        return;
    };
    let server = &cluster.members[0];
    let locks = connect(cluster.url()).await;
    let guards = [take(&locks, "a", LONG).await, take(&locks, "b", LONG).await];
    let value = "x".repeat(100_000);
    for number in 0..20 {
        server.put(&format!("else:{number}"), &value).await;
    }
    let refused = within(TIME_LIMIT, locks.lock("c").acquire()).await;
    assert!(
        matches!(refused, Err(LockError::Unavailable { .. })),
        "{refused:?}"
    );
    // So is each of many, which go together.
    let mut many = JoinSet::new();
    for number in 0..50 {
        let locks = locks.clone();
        many.spawn(async move { locks.lock(format!("many:{number}")).acquire().await });
    }
    for refused in within(TIME_LIMIT, many.join_all()).await {
        assert!(
            matches!(refused, Err(LockError::Unavailable { .. })),
            "{refused:?}"
        );
    }
    // Together with an acquisition, which is refused.
    let waiting = locks.lock("c").ttl(LONG).wait(TIME_LIMIT).acquire();
    let waiting = tokio::spawn(waiting);
    for guard in guards {
        release(guard).await;
    }
    assert_eq!(server.keys("lock/a").await, [""; 0]);
    waiting.abort();
}

// Section: etcd.md#what-it-promises
#[tokio::test]
async fn an_answer_that_is_too_large_is_not_read() {
    let Some(server) = EtcdServer::start("a huge answer").await else {
        return;
    };
    let gateway = Gateway::start(server.addr(), STREAMS);
    let locks = connect(gateway.url()).await;
    take_turn(&locks, "key").await;
    gateway.swell("KV/Range");
    let refused = within(TIME_LIMIT, locks.status("key")).await;
    let text = refused.unwrap_err().to_string();
    assert!(text.contains("larger than"), "{text}");
    gateway.pass();
    eventually(TIME_LIMIT, async || locks.health().await.connected).await;
    take_turn(&locks, "key").await;
}

/// The text of an error that says what the URL lacks.
fn names_too_few(error: &LockError) {
    let text = error.to_string();
    assert!(text.contains("name all of them"), "{text}");
}

// Section: etcd.md#configuration
#[tokio::test]
async fn members_that_are_too_few_are_noticed_whenever_they_become_so() {
    let Some(server) = EtcdServer::start("too few members").await else {
        return;
    };
    let gateway = Gateway::start(server.addr(), STREAMS);
    // A version that is not known confirms no leases.
    gateway.deny("Maintenance/Status");
    gateway.claim_members(3);
    let refused = within(TIME_LIMIT, LockManager::connect(gateway.url())).await;
    let error = refused.unwrap_err();
    assert!(matches!(error, LockError::InvalidOptions { .. }), "{error}");
    names_too_few(&error);

    let lazy = connect(LockConfig::new(gateway.url()).unwrap().lazy()).await;
    let refused = within(TIME_LIMIT, lazy.lock("key").acquire()).await;
    names_too_few(&refused.unwrap_err());

    // Members join while a lock is held.
    gateway.pass();
    gateway.deny("Maintenance/Status");
    let locks = connect(gateway.url()).await;
    let guard = take(&locks, "held", TTL).await;
    gateway.claim_members(3);
    within(TIME_LIMIT, guard.lost()).await;
    let refused = within(TIME_LIMIT, locks.lock("key").acquire()).await;
    names_too_few(&refused.unwrap_err());
    gateway.pass();
    eventually(TIME_LIMIT, async || {
        locks.lock("key").acquire().await.is_ok()
    })
    .await;
}

/// As a member that is about to stop, or a proxy that has had a connection for long enough. A watch keeps it open.
#[tokio::test]
async fn a_connection_that_takes_no_more_calls_is_replaced_at_once() {
    let Some(server) = EtcdServer::start("retired connections").await else {
        return;
    };
    let gateway = Gateway::start(server.addr(), STREAMS);
    let (locks, others) = (connect(gateway.url()).await, connect(&*server.url()).await);
    let guard = take(&others, "key", LONG).await;
    let waiter = queued(&locks, locks.lock("key").ttl(LONG).wait_forever()).await;
    assert_eq!(gateway.connections(), 1);
    gateway.retire();
    eventually(TIME_LIMIT, async || gateway.connections() > 1).await;
    take_turn(&locks, "free").await;
    let error = locks.health().await.last_error.unwrap();
    // It did not wait for answers in vain.
    assert!(error.message.contains("retires"), "{error:?}");
    release(guard).await;
    release(within(TIME_LIMIT, waiter).await.unwrap()).await;
}

/// A proxy may lose one stream, or share the streams of a connection among members of which one stands still.
#[tokio::test]
async fn a_call_that_is_lost_among_others_is_asked_again() {
    let Some(server) = EtcdServer::start("lost calls").await else {
        return;
    };
    let gateway = Gateway::start(server.addr(), STREAMS);
    let locks = connect(gateway.url()).await;
    let others = locks.clone();
    let busy = tokio::spawn(async move {
        loop {
            others.status("busy").await.unwrap();
        }
    });
    gateway.lose("stuck");
    let guard = take(&locks, "stuck", LONG).await;
    assert!(gateway.has_lost());
    assert_eq!(gateway.connections(), 1);
    busy.abort();
    release(guard).await;
}
