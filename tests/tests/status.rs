//! Promise: whoever asks is told who holds a lock, which locks are held, and can take one away.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use std::time::{Duration, SystemTime};

use lock_runtime::{Holder, LockError, LockKey, LockManager, Status, distributed_lock};
use tests::{
    Pulse, RedisServer, Worker, connect,
    kinds::Kind,
    release, within,
    world::{LONG, PATIENCE, World, in_every_world, in_line, poll_once, settled, take},
};

in_every_world!(
    nobody_holds_a_free_lock,
    one_holder_is_described,
    an_annotated_function_is_named,
    all_who_share_are_named,
    those_who_wait_are_counted,
    locks_are_listed_by_pattern,
    prefixes_are_respected,
    a_forced_release_stops_the_body_and_hands_over,
    a_forced_release_counts_those_who_share,
    a_forced_release_of_a_free_lock_does_nothing,
    questions_disturb_nobody,
    a_manager_that_was_shut_down_answers_questions_or_says_so,
);

async fn status(locks: &LockManager, key: &str) -> Status {
    within(PATIENCE, locks.status(key)).await.unwrap()
}

async fn list(locks: &LockManager, pattern: &str) -> Vec<String> {
    let keys = within(PATIENCE, locks.list(pattern)).await.unwrap();
    keys.iter().map(ToString::to_string).collect()
}

/// The holder is of this process and has had its lock since just now.
fn assert_described(holder: &Holder, fence: u64) {
    assert_eq!(holder.process, Some(std::process::id()), "{holder:?}");
    let host = holder.host.as_deref().expect("a host");
    assert!(!host.is_empty(), "{holder:?}");
    let since = holder.since.expect("its process answers").elapsed();
    let since = since.unwrap_or_default();
    assert!(since < PATIENCE, "{holder:?}");
    assert_eq!(holder.fence.expect("the same").get(), fence);
    let remaining = holder.remaining.expect("a lease");
    assert!(remaining <= LONG && remaining > LONG / 2, "{holder:?}");
    assert!(!holder.resting && !holder.id.is_empty(), "{holder:?}");
}

async fn nobody_holds_a_free_lock(world: World) {
    let locks = world.manager().await;
    for _ in 0..2 {
        let free = status(&locks, "key").await;
        assert_eq!(free.key.as_str(), "key");
        assert!(free.holders.is_empty() && !free.is_held(), "{free:?}");
        assert_eq!(free.waiters, 0);
        take(&locks, "key").await;
    }
}

async fn one_holder_is_described(world: World) {
    let (locks, others) = (world.manager().await, world.manager().await);
    let guard = locks.lock("key").ttl(LONG).acquire().await.unwrap();
    for locks in [&locks, &others] {
        let held = status(locks, "key").await;
        assert!(held.is_held() && held.waiters == 0, "{held:?}");
        let [holder] = &held.holders[..] else {
            panic!("{held:?}");
        };
        assert_described(holder, guard.fencing_token().get());
        assert_eq!(holder.function, None);
    }
    // `since` is that of the grant, and not that of the question.
    let first = status(&others, "key").await.holders[0].since.unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    let second = status(&others, "key").await.holders[0].since.unwrap();
    let moved = second.duration_since(first).unwrap_or_default();
    assert!(moved < Duration::from_millis(250), "moved by {moved:?}");
    assert!(second <= SystemTime::now());
    release(guard).await;
    assert!(!status(&others, "key").await.is_held());
}

#[distributed_lock(key = ["named:{name}", "also:{name}"], ttl = "60s")]
async fn named(name: &str, others: &LockManager) -> Result<Vec<Status>, LockError> {
    let first = others.status(LockKey::from(format!("named:{name}"))).await;
    let second = others.status(LockKey::from(format!("also:{name}"))).await;
    Ok(vec![first?, second?])
}

async fn an_annotated_function_is_named(world: World) {
    let (locks, others) = (world.manager().await, world.manager().await);
    let call = locks.scope(named("a", &others));
    for status in within(PATIENCE, call).await.unwrap() {
        let holder = &status.holders[0];
        assert_eq!(holder.function.as_deref(), Some("status::named"));
        let words = holder.to_string();
        let process = std::process::id().to_string();
        assert!(words.contains("`status::named`") && words.contains(&process));
    }
}

async fn all_who_share_are_named(world: World) {
    let (locks, others) = (world.manager().await, world.manager().await);
    for kind in [Kind::Reader, Kind::Permits(3)] {
        let mut guards = Vec::new();
        for locks in [&locks, &others, &locks] {
            let guard = kind.request(locks, "key").ttl(LONG).acquire().await;
            guards.push(guard.unwrap());
        }
        let held = status(&locks, "key").await;
        assert_eq!(held.holders.len(), 3, "{held:?}");
        for guard in &guards {
            let fence = guard.fencing_token();
            let mut holders = held.holders.iter();
            let holder = holders.find(|it| it.fence == Some(fence));
            assert_described(holder.expect("all are named"), fence.get());
        }
        for (left, guard) in guards.into_iter().enumerate() {
            release(guard).await;
            let held = status(&locks, "key").await;
            assert_eq!(held.holders.len(), 2 - left, "{held:?}");
        }
    }
}

async fn those_who_wait_are_counted(world: World) {
    let (locks, others) = (world.manager().await, world.manager().await);
    let _guard = locks.lock("key").ttl(LONG).acquire().await.unwrap();
    let mut waiters = Vec::new();
    for number in 0..5 {
        assert_eq!(status(&locks, "key").await.waiters, number);
        let kind = [Kind::Exclusive, Kind::Reader][number % 2];
        let request = kind.request(&others, "key").wait_forever();
        waiters.push(in_line(&others, request).await);
    }
    assert_eq!(status(&others, "key").await.waiters, 5);
    for left in (0..5).rev() {
        drop(waiters.pop());
        settled(&others).await;
        assert_eq!(status(&locks, "key").await.waiters, left);
    }
}

async fn locks_are_listed_by_pattern(world: World) {
    let (locks, others) = (world.manager().await, world.manager().await);
    assert_eq!(list(&locks, "*").await, [""; 0]);
    let names = ["stock:1", "stock:12", "stock:[1]", r"a\b", "order:1", "ünï"];
    let mut guards = Vec::new();
    for name in names {
        guards.push(locks.lock(name).ttl(LONG).acquire().await.unwrap());
    }
    // What else stands on a server is no lock: a line, and those who share.
    let reader = locks.lock("shared").read().ttl(LONG).acquire().await;
    let _writer = in_line(&others, others.lock("shared").wait_forever()).await;
    let _waiter = in_line(&others, others.lock("order:1").wait_forever()).await;

    let all = [
        "a\\b",
        "order:1",
        "shared",
        "stock:1",
        "stock:12",
        "stock:[1]",
        "ünï",
    ];
    let patterns: [(&str, &[&str]); 14] = [
        ("*", &all),
        ("**", &all),
        ("stock:*", &["stock:1", "stock:12", "stock:[1]"]),
        ("stock:?", &["stock:1"]),
        ("stock:??", &["stock:12"]),
        ("*:1", &["order:1", "stock:1"]),
        ("?????:1", &["order:1", "stock:1"]),
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

async fn prefixes_are_respected(world: World) {
    let config = world.config().prefix("shop").unwrap();
    let shop = LockManager::connect(config).await.unwrap();
    let locks = world.manager().await;
    let guard = shop.lock("key").ttl(LONG).acquire().await.unwrap();
    assert_eq!(list(&locks, "*").await, [""; 0]);
    assert_eq!(list(&shop, "*").await, ["key"]);
    assert!(!status(&locks, "key").await.is_held());
    assert_eq!(locks.force_release("key").await.unwrap(), 0);
    assert!(guard.is_held());
    let theirs = status(&shop, "key").await;
    assert_described(&theirs.holders[0], guard.fencing_token().get());
    assert_eq!(shop.force_release("key").await.unwrap(), 1);
    within(PATIENCE, guard.lost()).await;
}

async fn a_forced_release_stops_the_body_and_hands_over(world: World) {
    let (locks, others) = (world.manager().await, world.manager().await);
    let guard = locks.lock("key").ttl(LONG).acquire().await.unwrap();
    let fence = guard.fencing_token();
    let next = in_line(&others, others.lock("key").ttl(LONG).wait_forever()).await;
    let pulse = Pulse::default();
    let body = tokio::spawn({
        let pulse = pulse.clone();
        async move { guard.hold(pulse.beat(&guard)).await }
    });
    within(PATIENCE, pulse.reaches(3)).await;
    assert_eq!(others.force_release("key").await.unwrap(), 1);
    // At once, and not at the next renewal, which is twenty seconds away.
    let outcome = within(Duration::from_secs(3), body).await.unwrap();
    let Err(error) = outcome;
    let LockError::Lost { key, fence: of, .. } = error else {
        panic!("{error}");
    };
    assert_eq!((key.as_str(), of), ("key", fence));
    let next = within(Duration::from_secs(3), next).await.unwrap();
    assert!(next.fencing_token() > fence);
    settled(&locks).await;
    assert!(next.is_held(), "the old holder has taken it away");
    release(next).await;
    assert_eq!(world.traces().await, [""; 0]);
}

async fn a_forced_release_counts_those_who_share(world: World) {
    let (locks, others) = (world.manager().await, world.manager().await);
    for kind in [Kind::Reader, Kind::Permits(4)] {
        let mut guards = Vec::new();
        for locks in [&locks, &others, &locks] {
            let guard = kind.request(locks, "key").ttl(LONG).acquire().await;
            guards.push(guard.unwrap());
        }
        // Its lease ends, and it is none of them any more.
        let short = Duration::from_millis(200);
        let fixed = kind.request(&locks, "key").ttl(short).renew(false);
        let fixed = fixed.acquire().await.unwrap();
        let gone = async || status(&others, "key").await.holders.len() == 3;
        tests::eventually(PATIENCE, gone).await;
        let writer = in_line(&others, others.lock("key").ttl(LONG).wait_forever()).await;
        assert_eq!(others.force_release("key").await.unwrap(), 3);
        for guard in &guards {
            within(Duration::from_secs(3), guard.lost()).await;
        }
        let writer = within(PATIENCE, writer).await.unwrap();
        assert!(
            guards
                .iter()
                .all(|it| it.fencing_token() < writer.fencing_token())
        );
        drop((guards, fixed));
        settled(&locks).await;
        settled(&others).await;
        assert!(writer.is_held());
        release(writer).await;
    }
    assert_eq!(world.traces().await, [""; 0]);
}

async fn a_forced_release_of_a_free_lock_does_nothing(world: World) {
    let locks = world.manager().await;
    let guard = locks.lock("other").ttl(LONG).acquire().await.unwrap();
    assert_eq!(locks.force_release("key").await.unwrap(), 0);
    take(&locks, "key").await;
    assert_eq!(locks.force_release("key").await.unwrap(), 0);
    assert!(guard.is_held());
}

async fn questions_disturb_nobody(world: World) {
    let (locks, others) = (world.manager().await, world.manager().await);
    let guard = locks.lock("key").ttl(LONG).acquire().await.unwrap();
    let mut waiter = in_line(&others, others.lock("key").ttl(LONG).wait_forever()).await;
    for _ in 0..20 {
        let (held, listed) = (status(&others, "key"), list(&locks, "k*"));
        let (held, listed) = tokio::join!(held, listed);
        assert_eq!((held.holders.len(), held.waiters), (1, 1), "{held:?}");
        assert_eq!(listed, ["key"]);
    }
    assert!(poll_once(&mut waiter).await.is_pending());
    assert!(guard.is_held());
    release(guard).await;
    release(within(PATIENCE, waiter).await.unwrap()).await;
    assert_eq!(world.traces().await, [""; 0]);
}

async fn a_manager_that_was_shut_down_answers_questions_or_says_so(world: World) {
    let locks = world.manager().await;
    within(PATIENCE, locks.shutdown()).await;
    match within(PATIENCE, locks.status("key")).await {
        Ok(status) => assert!(!status.is_held()),
        Err(error) => assert!(matches!(error, LockError::ShutDown), "{error}"),
    }
}

/// The process that the worker is, as its status has it.
async fn holder_in(worker: &Worker, locks: &LockManager) -> Holder {
    let mut held = status(locks, "key").await;
    assert_eq!(held.holders.len(), 1, "{held:?}");
    let holder = held.holders.remove(0);
    assert_eq!(holder.process, Some(worker.pid()), "{holder:?}");
    holder
}

#[tokio::test]
async fn a_holder_whose_process_is_stopped_is_still_named() {
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let url = server.url();
    for kind in ["exclusive", "reader", "permits:2"] {
        let args = ["holder", &url, kind, "key", "60000"];
        let mut worker = Worker::spawn(env!("CARGO_BIN_EXE_worker"), args).await;
        let fence = worker.fence().await;
        let awake = holder_in(&worker, &locks).await;
        assert_eq!(awake.fence.unwrap().get(), fence);
        assert!(awake.since.is_some());
        worker.pause();
        let asleep = holder_in(&worker, &locks).await;
        assert_eq!((asleep.since, asleep.fence), (None, None));
        assert_eq!((&asleep.id, &asleep.host), (&awake.id, &awake.host));
        assert!(asleep.remaining.unwrap() > LONG / 2);
        // Its lock can be taken all the same; it learns of it when it wakes.
        assert_eq!(locks.force_release("key").await.unwrap(), 1);
        let next = locks.lock("key").wait(Duration::ZERO).acquire();
        let next = within(PATIENCE, next).await.unwrap();
        assert!(next.fencing_token().get() > fence);
        worker.resume();
        let lost = worker.line().await;
        assert!(lost.contains("lost"), "{lost}");
        release(next).await;
    }
}

#[tokio::test]
async fn a_foreign_client_is_shown_and_removed() {
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let owner = RedisServer::owner_key("key");
    for (ttl, value) in [(false, "somebody else"), (true, "me@home"), (true, "")] {
        server.cmd(&["SET", &owner, value]).await;
        if ttl {
            server.cmd(&["PEXPIRE", &owner, "60000"]).await;
        }
        let waiter = in_line(&locks, locks.lock("key").ttl(LONG).wait_forever()).await;
        let held = status(&locks, "key").await;
        assert_eq!((held.holders.len(), held.waiters), (1, 1), "{held:?}");
        let holder = &held.holders[0];
        assert_eq!(&*holder.id, value);
        assert_eq!(holder.remaining.is_some(), ttl, "{holder:?}");
        assert_eq!((holder.process, &holder.host), (None, &None));
        assert_eq!((holder.since, holder.fence), (None, None));
        assert!(!holder.resting);
        assert_eq!(list(&locks, "*").await, ["key"]);
        assert_eq!(locks.force_release("key").await.unwrap(), 1);
        release(within(Duration::from_secs(3), waiter).await.unwrap()).await;
    }
    assert_eq!(server.keys("lock:{*").await, [""; 0]);
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

#[tokio::test]
async fn a_server_that_is_gone_cannot_be_asked() {
    let mut server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    server.kill().await;
    let error = within(PATIENCE, locks.status("key")).await.unwrap_err();
    assert!(matches!(error, LockError::Unavailable { .. }), "{error}");
    let error = within(PATIENCE, locks.list("*")).await.unwrap_err();
    assert!(matches!(error, LockError::Unavailable { .. }), "{error}");
    let error = within(PATIENCE, locks.force_release("key"))
        .await
        .unwrap_err();
    assert!(matches!(error, LockError::Unavailable { .. }), "{error}");
}
