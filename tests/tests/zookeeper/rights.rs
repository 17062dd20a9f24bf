//! Users: what one has created, others cannot touch.

use std::{
    cell::Cell,
    convert::Infallible,
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use lock_runtime::{Credentials, LockConfig, LockError, LockManager};
use tests::{LONG, Proxy, TIME_LIMIT, connect, eventually, release, take_turn, within};

use crate::{manager, server};

// Section: zookeeper.md#running-it
#[tokio::test]
async fn the_nodes_of_a_user_are_closed_to_others() {
    let Some(server) = server().await else { return };
    let url = |user: &str| format!("zookeeper://{user}{}/rights", server.addr());
    let locks = manager(&url("me:p%40ss@"), LONG).await;
    let same = manager(&url("me:p%40ss@"), LONG).await;
    take_turn(&locks, "key").await;
    take_turn(&same, "key").await;
    for stranger in ["", "me:wrong@", "you:p%40ss@"] {
        let config = LockConfig::new(url(stranger)).unwrap();
        let refused = LockManager::connect(config.connect_timeout(Duration::from_secs(10)));
        let error = within(TIME_LIMIT, refused).await.unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, LockError::Unavailable { .. }), "{text}");
        assert!(text.contains("has no right to the nodes"), "{text}");
        assert!(!text.contains("p@ss") && !text.contains("wrong"), "{text}");
    }
}

/// Waiting does not help: it fails at once, and says why.
async fn is_refused(locks: &LockManager) {
    let acquire = locks.lock("key").wait_forever().acquire();
    let error = within(TIME_LIMIT, acquire).await.unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, LockError::Unavailable { .. }), "{text}");
    assert!(text.contains("has no right to the nodes"), "{text}");
}

// Section: zookeeper.md#what-failures-do
#[tokio::test]
async fn a_node_ahead_that_is_closed_fails_those_behind_it() {
    let Some(server) = server().await else { return };
    let locks = manager(&server.url("ahead"), LONG).await;
    let mut peer = server.peer().await;
    for above in ["/ahead/lock", "/ahead/lock/key"] {
        peer.create(above, "").await;
    }
    let closed = format!("/ahead/lock/key/x-{:032x}-0000000000", 1);
    peer.create_closed(&closed).await;
    is_refused(&locks).await;
    let alone = async || server.peer().await.children("/ahead/lock/key").await.len() == 1;
    eventually(TIME_LIMIT, alone).await;
    // A try need not know who it is.
    let acquire = locks.lock("key").wait(Duration::ZERO).acquire();
    let error = within(TIME_LIMIT, acquire).await.unwrap_err();
    assert!(matches!(error, LockError::Contended { .. }), "{error}");
}

// Section: zookeeper.md#what-failures-do
#[tokio::test]
async fn a_lock_whose_node_cannot_be_created_fails() {
    let Some(server) = server().await else { return };
    let mut peer = server.peer().await;
    peer.create("/closed", "").await;
    peer.create_closed("/closed/lock").await;
    let locks = manager(&server.url("closed"), LONG).await;
    is_refused(&locks).await;
    let acquire = locks.lock("key").wait(Duration::ZERO).acquire();
    let error = within(TIME_LIMIT, acquire).await.unwrap_err();
    assert!(matches!(error, LockError::Unavailable { .. }), "{error}");
}

// Section: zookeeper.md#running-it
#[tokio::test]
async fn what_is_held_is_kept_where_a_provider_changes_the_password_or_falls_silent() {
    let Some(server) = server().await else { return };
    let proxy = Proxy::start(server.addr());
    let passwords = Arc::new(AtomicU32::new(0));
    let config = LockConfig::new(format!("zookeeper://{}/changes", proxy.addr())).unwrap();
    let asked = Arc::clone(&passwords);
    let config = config.credentials(move || {
        let number = asked.fetch_add(1, Ordering::SeqCst);
        async move {
            if number > 1 {
                pending::<()>().await;
            }
            Ok::<_, Infallible>(Credentials::new("me", format!("password-{number}")))
        }
    });
    let locks = connect(
        config
            .ttl(Duration::from_secs(8))
            .connect_timeout(TIME_LIMIT),
    )
    .await;
    let guard = locks.lock("key").acquire().await.unwrap();
    for times in 2..=3 {
        proxy.cut().await;
        eventually(TIME_LIMIT, async || {
            passwords.load(Ordering::SeqCst) >= times
        })
        .await;
        let before = Cell::new(guard.remaining());
        // A heartbeat is confirmed again.
        let confirmed = async || guard.remaining() > before.replace(guard.remaining());
        eventually(TIME_LIMIT, confirmed).await;
        take_turn(&locks, "other").await;
    }
    release(guard).await;
    take_turn(&locks, "key").await;
}

/// Else it would grant locks, and lose them all at the end of each session.
// Section: zookeeper.md#what-failures-do
#[tokio::test]
async fn a_lazy_manager_without_the_node_of_its_session_grants_nothing() {
    let Some(server) = server().await else { return };
    let mut peer = server.peer().await;
    for above in ["/lazy", "/lazy/lock"] {
        peer.create(above, "").await;
    }
    // A stranger's, below which nobody else may create anything.
    peer.create_closed("/lazy/lock.sessions").await;
    let config = LockConfig::new(server.url("lazy")).unwrap();
    let locks = connect(config.lazy()).await;
    eventually(TIME_LIMIT, async || {
        let acquire = locks.lock("key").wait(Duration::from_secs(1)).acquire();
        let refused = within(TIME_LIMIT, acquire).await;
        refused.is_err_and(|it| it.to_string().contains("has no right to the nodes"))
    })
    .await;
    is_refused(&locks).await;
    let left = locks.list("*").await;
    assert!(left.unwrap().is_empty());
}
