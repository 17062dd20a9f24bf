//! The layout in which every key is named, on one server.

use tests::{LONG, RedisServer, TIME_LIMIT, connect, granted, queue, release, take, within};
use tokio::task::JoinSet;

// Section: operations.md#configuration
#[tokio::test]
async fn every_key_that_a_script_uses_is_named_in_its_call() {
    let server = RedisServer::start().await;
    let locks = connect(format!("{}?layout=declared", server.url())).await;
    let mut monitor = server.monitor().await;
    let guard = take(&locks, "key", LONG).await;
    let fence = guard.fencing_token();
    let waiter = queue(&server, &locks, "key", LONG, 1).await;
    release(guard).await;
    let next = granted(TIME_LIMIT, waiter).await;
    assert!(next.fencing_token() > fence);
    release(next).await;
    let reader = locks.lock("key").read().acquire().await.expect("free");
    locks.status("key").await.expect("a status");
    locks.force_release("key").await.expect("it is held");
    drop(reader);

    let mut calls = 0;
    for command in monitor.commands(&server).await {
        let [name, _, count, ..] = &*command else {
            continue;
        };
        if name.eq_ignore_ascii_case("EVALSHA") || name.eq_ignore_ascii_case("EVAL") {
            let owner = RedisServer::owner_key("key");
            let parts = ["", ":f", ":q", ":s", ":h", ":l"].map(|part| format!("{owner}{part}"));
            let count: usize = count.parse().expect("a count");
            assert_eq!(command[3..3 + count], parts[..count], "{command:?}");
            // The history, by a revocation alone.
            assert!([1, 5, 6].contains(&count), "{command:?}");
            calls += 1;
        }
    }
    assert!(calls >= 8, "{calls}");
    let common = server.keys("lock:fence").await;
    assert!(common.is_empty(), "each lock has its own counter");
}

// Section: guarantees.md#fencing-tokens-grow
#[tokio::test]
async fn a_counter_that_is_ahead_of_the_clock_goes_on() {
    let server = RedisServer::start().await;
    let locks = connect(format!("{}?layout=declared", server.url())).await;
    let guard = take(&locks, "key", LONG).await;
    // As of a master whose clock is an hour ahead.
    let ahead = guard.fencing_token().get() + 3_600_000_000;
    release(guard).await;
    let counter = format!("{}:f", RedisServer::owner_key("key"));
    server.cmd(&["SET", &counter, &ahead.to_string()]).await;
    for turn in 1..=3 {
        let guard = take(&locks, "key", LONG).await;
        assert_eq!(guard.fencing_token().get(), ahead + turn);
        release(guard).await;
    }
}

#[tokio::test]
async fn those_who_want_one_lock_go_together() {
    const CROWD: u64 = 256;

    let server = RedisServer::start().await;
    let locks = connect(format!("{}?layout=declared", server.url())).await;
    let holder = take(&locks, "key", LONG).await;
    let mut last = holder.fencing_token();
    let before = server.calls("evalsha").await;
    let mut crowd = JoinSet::new();
    for _ in 0..CROWD {
        let request = locks.lock("key").ttl(LONG).wait(TIME_LIMIT);
        crowd.spawn(async move { request.acquire().await.expect("its turn comes") });
    }
    server.queued("key", CROWD).await;
    let calls = server.calls("evalsha").await - before;
    assert!(calls < CROWD, "{calls} calls for {CROWD} who join");

    release(holder).await;
    while let Some(guard) = within(TIME_LIMIT, crowd.join_next()).await {
        let guard = guard.expect("no panic");
        assert!(guard.fencing_token() > last, "fences grow in a crowd too");
        last = guard.fencing_token();
        release(guard).await;
    }
    assert_eq!(server.owner("key").await, None);
}
