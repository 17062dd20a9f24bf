//! Promise: a holder that is asked to yield hears of it, and decides; nothing stops its work.
//!
//! Section: guarantees.md#asking-to-yield
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

mod on_redis_under_faults;
mod redeployment;

use std::time::Duration;

use lock_runtime::{LockError, LockRequest, asked, current};
use tests::{
    LONG, SetnxServer, Store, TIME_LIMIT, connect, on_every_store, poll_once, release, take, waits,
    within,
};
use tokio::sync::oneshot;

on_every_store! {
    a_holder_hears_that_somebody_would_like_to_have_its_lock [ask],
    a_body_hears_of_it_and_returns_what_it_has [ask],
    each_holder_of_a_shared_lock_hears_of_it [ask read],
    neither_waiters_nor_later_holders_are_asked [ask],
    nor_are_those_who_wait_for_a_permit [ask permits],
    a_writer_that_becomes_a_reader_meanwhile_hears_of_it [ask downgrade],
    one_of_several_keys_is_enough [ask several_keys],
    whoever_has_joined_a_lock_hears_of_it [ask],
    the_end_of_a_lock_ends_the_wait_too [ask force_release],
    nobody_hears_of_a_lock_that_is_closed_without_a_holder [ask min_hold],
    a_ticket_is_asked_for_nothing [ask tickets],
}

async fn a_holder_hears_that_somebody_would_like_to_have_its_lock(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    assert_eq!(within(TIME_LIMIT, others.ask("key")).await.unwrap(), 0);
    let guard = take(&locks, "key", LONG).await;
    let other = take(&locks, "other", LONG).await;
    let mut asked = guard.asked();
    assert!(poll_once(&mut asked).await.is_pending() && !guard.is_asked());
    for asking in [&others, &locks, &others] {
        assert_eq!(within(TIME_LIMIT, asking.ask("key")).await.unwrap(), 1);
        within(TIME_LIMIT, &mut asked).await;
        assert!(guard.is_asked() && guard.is_held());
        asked = guard.asked();
    }
    assert!(!other.is_asked());
    drop(asked);
    release(guard).await;
    assert!(!take(&locks, "key", LONG).await.is_asked());
}

async fn a_body_hears_of_it_and_returns_what_it_has(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let (begun, begins) = oneshot::channel();
    let request = locks.lock("key").ttl(LONG);
    let work = tokio::spawn(request.run(async move |_| {
        begun.send(()).unwrap();
        let asked = asked();
        tokio::pin!(asked);
        assert!(poll_once(&mut asked).await.is_pending());
        asked.await;
        7
    }));
    within(TIME_LIMIT, begins).await.unwrap();
    let waiter = others.lock("key").ttl(LONG).wait_forever().acquire();
    let waiter = tokio::spawn(waiter);
    waits(&others, "key", 1).await;
    assert!(!work.is_finished());
    assert_eq!(within(TIME_LIMIT, others.ask("key")).await.unwrap(), 1);
    assert_eq!(within(TIME_LIMIT, work).await.unwrap().unwrap(), 7);
    release(within(TIME_LIMIT, waiter).await.unwrap().unwrap()).await;
}

async fn each_holder_of_a_shared_lock_hears_of_it(store: Store) {
    let managers = [store.manager().await, store.manager().await];
    let mut guards = Vec::new();
    for number in 0..4 {
        let request = managers[number % 2].lock("key").ttl(LONG).read();
        guards.push(within(TIME_LIMIT, request.acquire()).await.unwrap());
    }
    assert_eq!(within(TIME_LIMIT, managers[0].ask("key")).await.unwrap(), 4);
    for guard in guards {
        within(TIME_LIMIT, guard.asked()).await;
        assert!(guard.is_held());
        release(guard).await;
    }
}

async fn neither_waiters_nor_later_holders_are_asked(store: Store) {
    are_asked_one_by_one(store, LockRequest::write).await;
}

async fn nor_are_those_who_wait_for_a_permit(store: Store) {
    are_asked_one_by_one(store, |request| request.permits(1)).await;
}

/// Each holds the lock alone, and is asked as soon as it has it.
async fn are_asked_one_by_one(store: Store, of_kind: fn(LockRequest) -> LockRequest) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let request = || of_kind(locks.lock("key").ttl(LONG).wait_forever());
    let guard = within(TIME_LIMIT, request().acquire()).await.unwrap();
    let mut waiters = Vec::new();
    for count in 1..=3 {
        let mut waiter = request().acquire();
        assert!(poll_once(&mut waiter).await.is_pending());
        waits(&others, "key", count).await;
        waiters.push(waiter);
    }
    let mut guard = Some(guard);
    for waiter in waiters {
        let held = guard.take().unwrap();
        assert!(!held.is_asked());
        // Of those to whom the lock is handed over in this process, the one that has it now hears of it.
        assert_eq!(within(TIME_LIMIT, others.ask("key")).await.unwrap(), 1);
        within(TIME_LIMIT, held.asked()).await;
        release(held).await;
        guard = Some(within(TIME_LIMIT, waiter).await.unwrap());
    }
    let last = guard.unwrap();
    // A store that is asked once a second is asked about both locks at once.
    let later = take(&locks, "later", LONG).await;
    assert_eq!(within(TIME_LIMIT, others.ask("later")).await.unwrap(), 1);
    within(TIME_LIMIT, later.asked()).await;
    assert!(!last.is_asked());
}

async fn a_writer_that_becomes_a_reader_meanwhile_hears_of_it(store: Store) {
    const TURNS: usize = 10;
    let (locks, others) = (store.manager().await, store.manager().await);
    for _ in 0..TURNS {
        let writer = take(&locks, "key", LONG).await;
        let both = async { tokio::join!(others.ask("key"), writer.downgrade()) };
        let (asked, reader) = within(TIME_LIMIT, both).await;
        assert_eq!(asked.unwrap(), 1);
        let reader = reader.unwrap();
        within(TIME_LIMIT, reader.asked()).await;
        release(reader).await;
    }
}

async fn one_of_several_keys_is_enough(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let request = locks.lock_all(["a", "b", "c"]).ttl(LONG);
    let guard = within(TIME_LIMIT, request.acquire()).await.unwrap();
    let mut asked = guard.asked();
    assert!(poll_once(&mut asked).await.is_pending());
    assert_eq!(within(TIME_LIMIT, others.ask("b")).await.unwrap(), 1);
    within(TIME_LIMIT, asked).await;
    assert!(guard.is_held());
}

async fn whoever_has_joined_a_lock_hears_of_it(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let guard = take(&locks, "key", LONG).await;
    let work = guard.hold(async {
        let request = locks.lock("key").max_hold(LONG).reentrant();
        let inner = request.acquire().await.unwrap();
        assert_eq!(others.ask("key").await.unwrap(), 1);
        inner.asked().await;
        assert!(current().unwrap().is_asked());
        inner.hold(asked()).await.unwrap();
    });
    within(TIME_LIMIT, work).await.unwrap();
}

async fn the_end_of_a_lock_ends_the_wait_too(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let guard = take(&locks, "key", Duration::from_secs(2)).await;
    let mut asked = guard.asked();
    assert!(poll_once(&mut asked).await.is_pending());
    others.force_release("key").await.unwrap();
    within(TIME_LIMIT, asked).await;
    assert!(!guard.is_asked() && !guard.is_held());
}

async fn nobody_hears_of_a_lock_that_is_closed_without_a_holder(store: Store) {
    let locks = store.manager().await;
    let request = locks.lock("key").ttl(LONG).min_hold(LONG);
    release(within(TIME_LIMIT, request.acquire()).await.unwrap()).await;
    assert_eq!(within(TIME_LIMIT, locks.ask("key")).await.unwrap(), 0);
    assert!(locks.status("key").await.unwrap().is_cooling_down());
}

async fn a_ticket_is_asked_for_nothing(store: Store) {
    let locks = store.manager().await;
    let guard = take(&locks, "key", LONG).await;
    let ticket = within(TIME_LIMIT, guard.into_ticket(LONG)).await.unwrap();
    assert_eq!(within(TIME_LIMIT, locks.ask("key")).await.unwrap(), 0);
    let adopted = locks.adopt(&ticket).ttl(LONG).acquire();
    assert!(!within(TIME_LIMIT, adopted).await.unwrap().is_asked());
}

#[tokio::test]
async fn outside_a_lock_nobody_is_asked() {
    assert!(poll_once(&mut asked()).await.is_pending());
}

#[tokio::test]
async fn a_store_whose_clients_do_not_hear_of_each_other_refuses_to_ask() {
    let store = Store::new(SetnxServer::start().await, &[]);
    let locks = connect(store.config()).await;
    let error = within(TIME_LIMIT, locks.ask("key")).await.unwrap_err();
    assert!(
        matches!(error, LockError::InvalidOptions { setting: "ask", .. }),
        "{error}"
    );
}
