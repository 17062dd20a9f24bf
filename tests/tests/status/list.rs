//! `list`: the names of the locks that are held, by pattern.
//!
//! Section: guarantees.md#looking-at-a-lock

use tests::{LONG, RedisServer, Store, TIME_LIMIT, connect, on_every_store, queued, within};

use crate::{assert_described, list, status};

on_every_store! {
    locks_are_listed_by_pattern [list read],
    prefixes_are_respected [list force_release fencing],
}

async fn locks_are_listed_by_pattern(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    assert_eq!(list(&locks, "*").await, [""; 0]);
    let names = ["stock:1", "stock:12", "stock:[1]", r"a\b", "order:1", "ünï"];
    let mut guards = Vec::new();
    for name in names {
        guards.push(locks.lock(name).ttl(LONG).acquire().await.unwrap());
    }
    // Other keys of a server are no locks: a queue, and the holders of a shared lock.
    let reader = locks.lock("shared").read().ttl(LONG).acquire().await;
    let _writer = queued(&others, others.lock("shared").wait_forever()).await;
    let _waiter = queued(&others, others.lock("order:1").wait_forever()).await;

    let all = [
        "a\\b",
        "order:1",
        "shared",
        "stock:1",
        "stock:12",
        "stock:[1]",
        "ünï",
    ];
    let patterns: [(&str, &[&str]); 18] = [
        ("*", &all),
        ("**", &all),
        ("stock:*", &["stock:1", "stock:12", "stock:[1]"]),
        ("stock:?", &["stock:1"]),
        ("stock:??", &["stock:12"]),
        ("*:1", &["order:1", "stock:1"]),
        ("?????:1", &["order:1", "stock:1"]),
        ("?n?", &["ünï"]),
        ("?*n*?", &["ünï"]),
        ("??n??", &[]),
        ("???", &["a\\b", "ünï"]),
        ("stock:1", &["stock:1"]),
        ("stock:[1]", &["stock:[1]"]),
        ("stock:[0-9]", &[]),
        ("stock:[^0]", &[]),
        (r"a\b", &["a\\b"]),
        ("nothing", &[]),
        ("", &[]),
    ];
    for (pattern, names) in patterns {
        for locks in [&locks, &others] {
            assert_eq!(list(locks, pattern).await, names, "{pattern}");
        }
    }
    drop((guards, reader));
}

async fn prefixes_are_respected(store: Store) {
    let config = store.config().prefix("shop");
    let shop = connect(config).await;
    let locks = store.manager().await;
    let guard = shop.lock("key").ttl(LONG).acquire().await.unwrap();
    assert_eq!(list(&locks, "*").await, [""; 0]);
    assert_eq!(list(&shop, "*").await, ["key"]);
    assert!(!status(&locks, "key").await.is_held());
    assert_eq!(locks.force_release("key").await.unwrap(), 0);
    assert!(guard.is_held());
    let theirs = status(&shop, "key").await;
    assert_described(&theirs.holders[0], guard.fencing_token().get());
    assert_eq!(shop.force_release("key").await.unwrap(), 1);
    within(TIME_LIMIT, guard.lost()).await;
}

#[tokio::test]
async fn a_server_with_many_keys_is_searched_in_steps() {
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let mut pipeline = ::redis::pipe();
    for number in 0..5_000 {
        pipeline
            .cmd("SET")
            .arg(format!("else:{number}"))
            .arg(1)
            .ignore();
        let name = RedisServer::owner_key(&format!("many:{number:04}"));
        pipeline
            .cmd("SET")
            .arg(name)
            .arg("me")
            .arg("PX")
            .arg(60_000)
            .ignore();
    }
    let mut connection = server.connection().await;
    let () = pipeline.query_async(&mut connection).await.unwrap();
    let all = list(&locks, "many:*").await;
    assert_eq!(all.len(), 5_000);
    assert!(all.is_sorted());
    assert_eq!(list(&locks, "many:000?").await.len(), 10);
}
