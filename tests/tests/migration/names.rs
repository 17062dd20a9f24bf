//! Names that are one Redis key are one lock, whatever escapes they have; and no lock has the key of another one's queue.
//!
//! Section: migrating.md#one-key-for-both-sides

use lock_runtime::{LockError, LockKey, LockManager, key};
use tests::{LONG, RedisServer, TIME_LIMIT, connect, release, take, within};

async fn managers(server: &RedisServer) -> [LockManager; 2] {
    let setnx = server.url().replace("redis://", "redis+setnx://");
    [
        connect(format!("{}?layout=plain", server.url())).await,
        connect(setnx).await,
    ]
}

/// The name of `a:b` as a value.
fn escaped() -> LockKey {
    let value = "a:b";
    key!("{value}").unwrap()
}

#[tokio::test]
async fn work_that_asks_for_its_own_lock_by_another_name_is_refused() {
    let server = RedisServer::start().await;
    for locks in managers(&server).await {
        for (outer, inner) in [
            (escaped(), LockKey::new("a:b").unwrap()),
            (LockKey::new("a:b").unwrap(), escaped()),
        ] {
            let acquire = locks.lock(outer.clone()).ttl(LONG).acquire();
            let guard = within(TIME_LIMIT, acquire).await.unwrap();
            let body = guard.hold(async {
                let again = locks.lock(inner.clone()).wait_forever().acquire();
                within(TIME_LIMIT, again).await.map(drop)
            });
            let asked = body.await.unwrap();
            assert!(
                matches!(asked, Err(LockError::AlreadyHeld { .. })),
                "{asked:?}"
            );
            for name in [outer, inner] {
                let token = guard.fencing_token_of(name);
                assert_eq!(token, Some(guard.fencing_token()));
            }
            release(guard).await;
        }
    }
}

#[tokio::test]
async fn several_keys_are_taken_in_one_order_by_whatever_names() {
    let server = RedisServer::start().await;
    for locks in managers(&server).await {
        let mut orders = Vec::new();
        for name in [escaped(), LockKey::new("a:b").unwrap()] {
            let keys = [name, LockKey::new("a0").unwrap(), escaped()];
            let guard = locks.lock_all(keys).acquire().await.unwrap();
            let names: Vec<_> = guard.keys().map(ToString::to_string).collect();
            release(guard).await;
            orders.push(names);
        }
        assert_eq!(orders, [["a:b", "a0"], ["a:b", "a0"]], "the last one first");
    }
}

#[tokio::test]
async fn a_lock_has_not_the_key_of_the_queue_of_another_one() {
    let server = RedisServer::start().await;
    let [locks, setnx] = managers(&server).await;
    for name in ["stock:q", "stock:s", "stock:h", "stock:l"] {
        let refused = locks.lock(name).acquire().await;
        assert!(
            matches!(refused, Err(LockError::InvalidKey { .. })),
            "{refused:?}"
        );
        release(take(&setnx, name, LONG).await).await;
    }
    release(take(&locks, "stock:m", LONG).await).await;
}
