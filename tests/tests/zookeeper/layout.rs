//! What people see who look with `zkCli`, and what they and other programs may do.

use std::time::Duration;

use lock_runtime::LockKey;
use tests::{LONG, TIME_LIMIT, queued, release, take, take_turn, within};

use crate::{manager, server};

#[tokio::test]
async fn nodes_are_named_as_the_documents_say() {
    let Some(server) = server().await else { return };
    let locks = manager(&server.url("apps/shop"), LONG).await;
    let mut peer = server.peer().await;
    let guard = locks.lock("stock:7/a.b").function("shop::buy");
    let guard = guard.acquire().await.unwrap();
    let _reader = queued(&locks, locks.lock("stock:7/a.b").read().wait_forever()).await;
    let _permit = queued(&locks, locks.lock("stock:7/a.b").permits(3).wait_forever()).await;

    let container = "/apps/shop/lock/stock:7%2Fa%2Eb";
    let mut names = peer.children(container).await;
    names.sort_by_key(|name| name.rsplit('-').next().map(str::to_owned));
    for (name, (kind, number)) in names.iter().zip([("x", 0), ("r", 1), ("p3", 2)]) {
        let parts: Vec<_> = name.split('-').collect();
        assert_eq!((parts[0], parts[1].len()), (kind, 32), "{name}");
        assert_eq!(parts[2], format!("{number:010}"));
    }
    let data = peer
        .data(&format!("{container}/{}", names[0]))
        .await
        .unwrap();
    let (name, time) = data.split_once('\n').unwrap();
    assert!(
        name.starts_with(names[0].split('-').nth(1).unwrap()),
        "{data}"
    );
    assert!(
        name.contains(&format!(" {}@", std::process::id())),
        "{data}"
    );
    assert!(name.ends_with(" shop::buy") && time == "60000", "{data}");
    assert_eq!(peer.children("/apps/shop/lock.sessions").await.len(), 1);
    release(guard).await;
}

#[tokio::test]
async fn a_cooling_lock_leaves_a_node_that_the_next_one_deletes() {
    let Some(server) = server().await else { return };
    let locks = manager(&server.url("cools"), LONG).await;
    let mut peer = server.peer().await;
    let cooldown = Duration::from_millis(700);
    let request = locks.lock("key").min_hold(cooldown);
    release(request.acquire().await.unwrap()).await;
    let names = peer.children("/cools/lock/key").await;
    assert!(
        matches!(&names[..], [name] if name.ends_with("-rest")),
        "{names:?}"
    );
    let guard = within(TIME_LIMIT, locks.lock("key").wait(TIME_LIMIT).acquire()).await;
    let names = peer.children("/cools/lock/key").await;
    assert!(
        matches!(&names[..], [name] if !name.ends_with("-rest")),
        "{names:?}"
    );
    release(guard.unwrap()).await;
}

// Section: zookeeper.md#what-it-creates
#[tokio::test]
async fn whoever_deletes_a_node_takes_the_lock_away() {
    let Some(server) = server().await else { return };
    let (locks, others) = (
        manager(&server.url("taken"), LONG).await,
        manager(&server.url("taken"), LONG).await,
    );
    let guard = locks.lock("key").acquire().await.unwrap();
    let next = queued(&others, others.lock("key").wait_forever()).await;
    let mut peer = server.peer().await;
    let names = peer.children("/taken/lock/key").await;
    let first = names
        .iter()
        .min_by_key(|name| name.rsplit('-').next().map(str::to_owned));
    assert!(
        peer.delete(&format!("/taken/lock/key/{}", first.unwrap()))
            .await
    );
    within(Duration::from_secs(3), guard.lost()).await;
    assert!(within(TIME_LIMIT, next).await.unwrap().is_held());
}

#[tokio::test]
async fn a_waiter_whose_node_is_deleted_waits_again() {
    let Some(server) = server().await else { return };
    let locks = manager(&server.url("again"), LONG).await;
    let guard = locks.lock("key").acquire().await.unwrap();
    let waiter = queued(&locks, locks.lock("key").wait_forever()).await;
    let mut peer = server.peer().await;
    let mut names = peer.children("/again/lock/key").await;
    names.sort_by_key(|name| name.rsplit('-').next().map(str::to_owned));
    assert!(peer.delete(&format!("/again/lock/key/{}", names[1])).await);
    release(guard).await;
    release(within(TIME_LIMIT, waiter).await.unwrap()).await;
}

#[tokio::test]
async fn nodes_of_others_hold_nothing_and_stay() {
    let Some(server) = server().await else { return };
    let locks = manager(&server.url("beside"), LONG).await;
    let guard = take(&locks, "key", LONG).await;
    let mut peer = server.peer().await;
    // ZooKeeper deletes a container that is empty.
    for name in ["_c_5f0c-lock-0000000000", "notes"] {
        peer.create(&format!("/beside/lock/key/{name}"), "").await;
    }
    release(guard).await;
    peer.create("/beside/lock/not.ours", "").await;
    assert!(!locks.status("key").await.unwrap().is_held());
    take_turn(&locks, "key").await;
    assert_eq!(peer.children("/beside/lock/key").await.len(), 2);
    assert!(locks.list("*").await.unwrap().is_empty());
}

#[tokio::test]
async fn every_name_is_one_lock() {
    let Some(server) = server().await else { return };
    let config = lock_runtime::LockConfig::new(server.url("names")).unwrap();
    let locks = tests::connect(config.prefix("a/b.c").ttl(LONG)).await;
    let names = [
        ".",
        "..",
        "a/b",
        "a",
        "a%2Fb",
        "%",
        "zookeeper",
        "😀",
        "\u{e000}",
        "\u{7f}",
    ];
    let mut guards = Vec::new();
    for name in names {
        let acquire = locks.lock(name).wait(Duration::ZERO).acquire();
        guards.push(within(TIME_LIMIT, acquire).await.unwrap());
    }
    let mut listed = locks.list("*").await.unwrap();
    let mut keys: Vec<_> = names
        .iter()
        .map(|name| LockKey::new(name).unwrap())
        .collect();
    listed.sort_unstable();
    keys.sort_unstable();
    assert_eq!(listed, keys);
}
