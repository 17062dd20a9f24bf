//! Promise: a program can ask who holds a lock and which locks are held, and can revoke one.
//!
//! Section: guarantees.md#looking-at-a-lock
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use std::time::{Duration, SystemTime};

use lock_runtime::inspect::{Holder, Status};
use lock_runtime::{LockError, LockKey, LockManager, distributed_lock};
use tests::{
    LONG, RedisServer, Store, TIME_LIMIT, connect, kinds::Kind, on_every_store, poll_once, queued,
    release, settled, take_turn, within,
};

mod diagnosis;
mod force_release;
mod list;
mod overview;
mod redis_server;
mod serialized;
mod silent;

on_every_store! {
    nobody_holds_a_free_lock,
    one_holder_is_described [fencing],
    an_annotated_function_is_named [several_keys],
    a_request_names_its_function [fencing],
    a_function_that_is_no_word_is_refused,
    a_name_that_was_handed_out_asks_about_the_same_lock [several_keys list force_release],
    all_who_share_are_named [read permits fencing],
    those_who_wait_are_counted [read],
    questions_disturb_nobody [list],
    a_manager_that_is_shut_down_answers_no_questions [list force_release],
    a_cooling_lock_is_closed_and_not_held [min_hold read permits list force_release],
}

async fn status(locks: &LockManager, key: &str) -> Status {
    within(TIME_LIMIT, locks.status(key)).await.unwrap()
}

async fn list(locks: &LockManager, pattern: &str) -> Vec<String> {
    let keys = within(TIME_LIMIT, locks.list(pattern)).await.unwrap();
    keys.iter().map(ToString::to_string).collect()
}

/// The holder is of this process and has had its lock since just now.
fn assert_described(holder: &Holder, fence: u64) {
    assert_eq!(holder.process, Some(std::process::id()), "{holder:?}");
    let host = holder.host.as_deref().expect("a host");
    assert!(!host.is_empty(), "{holder:?}");
    let since = holder.since.expect("its process answers").elapsed();
    let since = since.unwrap_or_default();
    assert!(since < TIME_LIMIT, "{holder:?}");
    assert_eq!(holder.fencing_token.expect("the same").get(), fence);
    let remaining = holder.remaining.expect("a lease");
    assert!(remaining <= LONG && remaining > LONG / 2, "{holder:?}");
    assert!(!holder.cooling_down && !holder.id.is_empty(), "{holder:?}");
}

async fn nobody_holds_a_free_lock(store: Store) {
    let locks = store.manager().await;
    for _ in 0..2 {
        let free = status(&locks, "key").await;
        assert_eq!(free.key.as_str(), "key");
        assert!(free.holders.is_empty() && !free.is_held(), "{free:?}");
        assert_eq!(free.waiting, 0);
        take_turn(&locks, "key").await;
    }
}

async fn one_holder_is_described(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let guard = locks.lock("key").ttl(LONG).acquire().await.unwrap();
    for locks in [&locks, &others] {
        let held = status(locks, "key").await;
        assert!(held.is_held() && held.waiting == 0, "{held:?}");
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
    let first = others.status(format!("named:{name}")).await;
    let second = others.status(format!("also:{name}")).await;
    Ok(vec![first?, second?])
}

async fn an_annotated_function_is_named(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let call = locks.scope(named("a", &others));
    for status in within(TIME_LIMIT, call).await.unwrap() {
        let holder = &status.holders[0];
        assert_eq!(holder.function.as_deref(), Some("status::named"));
        let words = holder.to_string();
        let process = std::process::id().to_string();
        assert!(words.contains("`status::named`") && words.contains(&process));
    }
}

async fn a_request_names_its_function(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let longest: &str = Box::leak("f".repeat(256).into_boxed_str());
    for function in ["shop::stock::restock", "restock", "größe::für<T>", longest] {
        let request = locks.lock("key").ttl(LONG).function(function);
        let guard = within(TIME_LIMIT, request.acquire()).await.unwrap();
        let held = status(&others, "key").await;
        assert_eq!(held.holders[0].function.as_deref(), Some(function));
        assert_described(&held.holders[0], guard.fencing_token().get());
        let busy = others.lock("key").try_once().acquire();
        let refused = within(TIME_LIMIT, busy).await.unwrap_err().to_string();
        assert!(
            refused.contains(&format!("`{function}` in process")),
            "{refused}"
        );
        release(guard).await;
    }
}

async fn a_function_that_is_no_word_is_refused(store: Store) {
    let locks = store.manager().await;
    let too_long: &str = Box::leak("f".repeat(257).into_boxed_str());
    for function in ["", "a b", "a\nb", "a\u{a0}b", "a\0b", too_long] {
        let acquire = locks.lock("key").function(function).acquire();
        let error = within(TIME_LIMIT, acquire).await.unwrap_err();
        assert!(
            error.to_string().starts_with("invalid function: "),
            "{error}"
        );
    }
}

// Section: guarantees.md#one-holder-at-a-time
async fn a_name_that_was_handed_out_asks_about_the_same_lock(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    for name in ["%{}:ü", "50%", "plain"] {
        let request = locks.lock_all([name, "other"]).ttl(LONG);
        let guard = within(TIME_LIMIT, request.acquire()).await.unwrap();
        for key in guard.keys() {
            let written = LockKey::from_escaped(key.as_str()).unwrap();
            for asked in [key, &written] {
                let status = within(TIME_LIMIT, others.status(asked)).await.unwrap();
                assert!(status.is_held() && status.key == *key, "{status:?}");
            }
        }
        let listed = within(TIME_LIMIT, others.list("*")).await.unwrap();
        assert_eq!(listed.len(), 2);
        for key in &listed {
            assert_eq!(others.force_release(key).await.unwrap(), 1, "{key}");
        }
        within(TIME_LIMIT, guard.lost()).await;
        let again = within(
            TIME_LIMIT,
            others.lock_all(guard.keys()).try_once().acquire(),
        )
        .await;
        release(again.unwrap()).await;
    }
}

async fn all_who_share_are_named(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
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
            let holder = holders.find(|it| it.fencing_token == Some(fence));
            assert_described(holder.expect("all are named"), fence.get());
        }
        for (left, guard) in guards.into_iter().enumerate() {
            release(guard).await;
            let held = status(&locks, "key").await;
            assert_eq!(held.holders.len(), 2 - left, "{held:?}");
        }
    }
}

async fn those_who_wait_are_counted(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let _guard = locks.lock("key").ttl(LONG).acquire().await.unwrap();
    let mut waiters = Vec::new();
    for number in 0..5 {
        assert_eq!(status(&locks, "key").await.waiting, number);
        let kind = [Kind::Exclusive, Kind::Reader][number % 2];
        let request = kind.request(&others, "key").wait_forever();
        waiters.push(queued(&others, request).await);
    }
    assert_eq!(status(&others, "key").await.waiting, 5);
    for left in (0..5).rev() {
        drop(waiters.pop());
        settled(&others).await;
        assert_eq!(status(&locks, "key").await.waiting, left);
    }
}

async fn questions_disturb_nobody(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let guard = locks.lock("key").ttl(LONG).acquire().await.unwrap();
    let mut waiter = queued(&others, others.lock("key").ttl(LONG).wait_forever()).await;
    for _ in 0..20 {
        let (held, listed) = (status(&others, "key"), list(&locks, "k*"));
        let (held, listed) = tokio::join!(held, listed);
        assert_eq!((held.holders.len(), held.waiting), (1, 1), "{held:?}");
        assert_eq!(listed, ["key"]);
    }
    assert!(poll_once(&mut waiter).await.is_pending());
    assert!(guard.is_held());
    release(guard).await;
    release(within(TIME_LIMIT, waiter).await.unwrap()).await;
    assert_eq!(store.traces().await, [""; 0]);
}

async fn a_manager_that_is_shut_down_answers_no_questions(store: Store) {
    let locks = store.manager().await;
    let guard = locks.lock("key").ttl(LONG).acquire().await.unwrap();
    let mut shutdown = Box::pin(locks.shutdown());
    assert!(poll_once(&mut shutdown).await.is_pending());
    let answers_nothing = async || {
        let status = within(TIME_LIMIT, locks.status("key")).await;
        assert!(matches!(status, Err(LockError::ShutDown)), "{status:?}");
        let list = within(TIME_LIMIT, locks.list("*")).await;
        assert!(matches!(list, Err(LockError::ShutDown)), "{list:?}");
        let forced = within(TIME_LIMIT, locks.force_release("key")).await;
        assert!(matches!(forced, Err(LockError::ShutDown)), "{forced:?}");
    };
    answers_nothing().await;
    assert!(guard.is_held());
    drop(guard);
    within(TIME_LIMIT, shutdown).await;
    answers_nothing().await;
}

async fn a_cooling_lock_is_closed_and_not_held(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    for kind in [Kind::Exclusive, Kind::Reader, Kind::Permits(1)] {
        let cooling = kind.request(&locks, "key").min_hold(LONG);
        release(cooling.acquire().await.unwrap()).await;
        for locks in [&locks, &others] {
            let closed = status(locks, "key").await;
            assert!(!closed.is_held() && closed.is_cooling_down(), "{closed:?}");
            let holder = &closed.holders[0];
            assert!(
                holder.cooling_down && holder.since.is_none() && holder.fencing_token.is_none()
            );
            assert_eq!(holder.process, Some(std::process::id()));
            assert_eq!(list(locks, "*").await, ["key"]);
            let error = locks.lock("key").wait(Duration::ZERO).acquire().await;
            let text = error.unwrap_err().to_string();
            assert!(
                text.starts_with("lock `key` cools down for another "),
                "{text}"
            );
            let process = format!("process {}", std::process::id());
            assert!(text.contains(&process), "{text}");
        }
        assert_eq!(others.force_release("key").await.unwrap(), 1);
        let free = status(&locks, "key").await;
        assert!(!free.is_held() && !free.is_cooling_down(), "{free:?}");
    }
}

#[tokio::test]
async fn a_question_that_is_not_answered_says_so() {
    let mut server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    server.kill().await;
    let error = within(TIME_LIMIT, locks.status("key")).await.unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, LockError::Unavailable { .. }), "{text}");
    assert!(!text.contains("run without the lock"), "{text}");
}
