//! Who waits and in which order, what all locks look like, and what has happened between two looks.

use std::time::Duration;

use lock_runtime::LockManager;
use lock_runtime::inspect::{Change, ChangeKind, Kind, Overview};
use tests::{
    LONG, Memory, RedisServer, Store, TIME_LIMIT, connect, eventually, kinds, on_every_store,
    queued, release, take, take_turn, within,
};

use crate::status;

on_every_store! {
    the_queue_is_reported_in_its_order [read],
    an_overview_has_what_is_held_and_waited_for [list read min_hold],
    a_shared_lock_has_all_its_holders_in_an_overview [list read permits],
    an_overview_describes_a_hundred_holders_of_a_lock_and_counts_all [list permits],
    two_overviews_tell_who_took_and_left_a_lock [list],
}

async fn overview(locks: &LockManager, pattern: &str) -> Overview {
    within(TIME_LIMIT, locks.overview(pattern)).await.unwrap()
}

async fn the_queue_is_reported_in_its_order(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let _guard = take(&locks, "key", LONG).await;
    assert!(status(&locks, "key").await.waiters.is_empty());
    let names = ["a::first", "b::second", "c::third", "d::fourth"];
    let mut waiters = Vec::new();
    for (number, name) in names.into_iter().enumerate() {
        let locks = [&locks, &others][number % 2];
        let kind = [kinds::Kind::Exclusive, kinds::Kind::Reader][number / 2];
        let request = kind.request(locks, "key").function(name).wait_forever();
        waiters.push(queued(locks, request).await);
        // Several connections keep no order among themselves.
        let waits = async || status(&others, "key").await.waiting == number + 1;
        eventually(TIME_LIMIT, waits).await;
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    // Of several servers, one may hear of a waiter later than the others.
    let in_order = async || {
        let waiters = status(&others, "key").await.waiters;
        let listed = waiters.iter().map(|it| it.function.as_deref().unwrap());
        listed.eq(names)
    };
    eventually(TIME_LIMIT, in_order).await;
    let held = status(&others, "key").await;
    assert_eq!(held.waiting, 4);
    let kinds: Vec<_> = held.waiters.iter().map(|it| it.kind).collect();
    assert_eq!(
        kinds,
        [Kind::Exclusive, Kind::Exclusive, Kind::Read, Kind::Read]
    );
    for waiter in &held.waiters {
        assert_eq!(waiter.process, Some(std::process::id()), "{waiter:?}");
        let waited = waiter.waited.unwrap();
        assert!(
            waited >= Duration::from_millis(50) && waited < TIME_LIMIT,
            "{waiter:?}"
        );
    }
    assert!(
        held.waiters
            .is_sorted_by(|one, next| one.waited >= next.waited)
    );
    drop(waiters.remove(1));
    eventually(TIME_LIMIT, async || {
        status(&locks, "key").await.waiting == 3
    })
    .await;
    assert_eq!(
        status(&locks, "key").await.waiters[1].function.as_deref(),
        Some("c::third")
    );
}

async fn an_overview_has_what_is_held_and_waited_for(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    assert_eq!(overview(&locks, "*").await.locks, []);
    let _held = take(&locks, "stock:held", LONG).await;
    let reader = locks.lock("stock:read").read().ttl(LONG).acquire();
    let _reader = within(TIME_LIMIT, reader).await.unwrap();
    let _first = queued(&others, others.lock("stock:read").wait_forever()).await;
    let _second = queued(&others, others.lock("stock:read").read().wait_forever()).await;
    let cooling = locks.lock("stock:sold").min_hold(LONG).acquire();
    release(within(TIME_LIMIT, cooling).await.unwrap()).await;
    take_turn(&others, "stock:free").await;

    for locks in [&locks, &others] {
        assert_eq!(overview(locks, "order:*").await.locks, []);
        let seen = overview(locks, "stock:*").await.locks;
        let names: Vec<_> = seen.iter().map(|it| it.key.as_str()).collect();
        assert_eq!(names, ["stock:held", "stock:read", "stock:sold"]);
        let kinds: Vec<_> = seen.iter().map(|it| it.kind).collect();
        assert_eq!(kinds, [Some(Kind::Exclusive), Some(Kind::Read), None]);
        let counts: Vec<_> = seen.iter().map(|it| (it.held_by, it.waiting)).collect();
        assert_eq!(counts, [(1, 0), (1, 2), (1, 0)]);
        assert!(seen[0].longest_wait.is_none());
        assert!(seen[1].longest_wait.unwrap() < TIME_LIMIT);
        let holder = &seen[0].holders[0];
        assert_eq!(holder.process, Some(std::process::id()));
        assert!(holder.remaining.unwrap() > LONG / 2 && !holder.cooling_down);
        assert!(seen[2].holders[0].cooling_down);
    }
}

async fn a_shared_lock_has_all_its_holders_in_an_overview(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let mut guards = Vec::new();
    for locks in [&locks, &others, &locks] {
        let request = locks.lock("key").permits(3).ttl(LONG).acquire();
        guards.push(within(TIME_LIMIT, request).await.unwrap());
    }
    let seen = overview(&others, "*").await.locks;
    assert_eq!((seen.len(), seen[0].held_by), (1, 3));
    assert_eq!(seen[0].kind, Some(Kind::Permits(3)));
    let reported = status(&locks, "key").await;
    let mut ids: Vec<_> = seen[0].holders.iter().map(|it| &it.id).collect();
    let mut known: Vec<_> = reported.holders.iter().map(|it| &it.id).collect();
    ids.sort_unstable();
    known.sort_unstable();
    assert_eq!(ids, known);
}

async fn an_overview_describes_a_hundred_holders_of_a_lock_and_counts_all(store: Store) {
    let locks = store.manager().await;
    let mut guards = Vec::new();
    for _ in 0..102 {
        let request = locks.lock("key").permits(102).ttl(LONG).acquire();
        guards.push(within(TIME_LIMIT, request).await.unwrap());
    }
    let seen = overview(&locks, "*").await.locks;
    assert_eq!((seen[0].held_by, seen[0].holders.len()), (102, 100));
}

async fn two_overviews_tell_who_took_and_left_a_lock(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let kinds = |changes: &[Change]| changes.iter().map(|it| it.kind).collect::<Vec<_>>();
    let free = overview(&others, "*").await;
    let guard = take(&locks, "key", LONG).await;
    let held = overview(&others, "*").await;
    let taken = held.changes_since(&free);
    assert_eq!(kinds(&taken), [ChangeKind::Granted]);
    assert_eq!(taken[0].holder.process, Some(std::process::id()));
    assert_eq!(overview(&others, "*").await.changes_since(&held), []);

    let next = queued(&others, others.lock("key").ttl(LONG).wait_forever()).await;
    let awaited = overview(&others, "*").await;
    release(guard).await;
    let next = within(TIME_LIMIT, next).await.unwrap();
    let passed = overview(&others, "*").await;
    let changes = passed.changes_since(&awaited);
    assert_eq!(
        kinds(&changes),
        [ChangeKind::Released, ChangeKind::HandedOver]
    );
    assert_ne!(changes[0].holder, changes[1].holder);
    release(next).await;
    let freed = overview(&locks, "*").await.changes_since(&passed);
    assert_eq!(kinds(&freed), [ChangeKind::Released]);

    let short = Duration::from_millis(300);
    let lapsing = locks.lock("key").ttl(short).renew(false).acquire();
    let lapsing = within(TIME_LIMIT, lapsing).await.unwrap();
    std::mem::forget(lapsing);
    let held = overview(&others, "*").await;
    tokio::time::sleep(2 * short).await;
    let lost = overview(&others, "*").await.changes_since(&held);
    assert_eq!(kinds(&lost), [ChangeKind::Lost]);
}

async fn short_acquisitions_are_counted(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let before = overview(&locks, "*").await;
    // Else the counter, which a connection raises to the clock, may just have been raised.
    tokio::time::sleep(Duration::from_millis(20)).await;
    // These count each lock by itself, if at all.
    let counts = !["Redis Cluster", "ZooKeeper", "etcd"].contains(&locks.capabilities().store);
    let before = match overview(&locks, "*").await {
        later if !counts => return assert_eq!(later.grants_since(&before), None),
        later if later.grants_since(&before) == Some(0) => later,
        later => panic!("{before:?} {later:?}"),
    };
    for _ in 0..7 {
        take_turn(&others, "key").await;
    }
    let after = overview(&locks, "*").await;
    assert_eq!(after.grants_since(&before), Some(7));
    assert_eq!(after.changes_since(&before), []);
}

#[tokio::test]
async fn short_acquisitions_are_counted_in_memory() {
    short_acquisitions_are_counted(Store::new(Memory::new(), &[])).await;
}

#[tokio::test]
async fn short_acquisitions_are_counted_on_redis() {
    short_acquisitions_are_counted(Store::new(RedisServer::start().await, &[])).await;
}

#[tokio::test]
async fn an_overview_of_thousands_is_whole() {
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let mut pipeline = ::redis::pipe();
    for number in 0..3_000 {
        let owner = RedisServer::owner_key(&format!("many:{number:04}"));
        let queue = RedisServer::queue_key(&format!("many:{:04}", number + 1_000));
        pipeline
            .cmd("SET")
            .arg(owner)
            .arg("me")
            .arg("PX")
            .arg(60_000)
            .ignore();
        pipeline
            .cmd("ZADD")
            .arg(queue)
            .arg(number)
            .arg("x:1000:c\nyou")
            .ignore();
        pipeline
            .cmd("SET")
            .arg(format!("else:{number}"))
            .arg(1)
            .ignore();
    }
    server
        .cmd(&["RPUSH", &RedisServer::owner_key("list"), "1"])
        .await;
    let mut connection = server.connection().await;
    let () = pipeline.query_async(&mut connection).await.unwrap();
    let seen = overview(&locks, "many:*").await.locks;
    assert_eq!(seen.len(), 4_000);
    assert!(seen.is_sorted_by(|one, next| one.key < next.key));
    assert_eq!(seen.iter().filter(|it| it.held_by == 1).count(), 3_000);
    assert_eq!(seen.iter().filter(|it| it.waiting == 1).count(), 3_000);
    // What closes a lock without being one is seen as well.
    let strange = overview(&locks, "list").await.locks;
    assert_eq!((strange.len(), strange[0].held_by), (1, 1));
}
