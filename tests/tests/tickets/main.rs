//! Promise: a ticket keeps a lock closed after its guard is gone, and hands it to exactly one adopter.
//!
//! Section: guarantees.md#tickets
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

mod in_the_attribute;
mod on_etcd_under_faults;
mod on_postgres_under_faults;
mod on_redis_servers;
mod on_redis_under_faults;
mod on_zookeeper_under_faults;
mod scripts;
mod transfers;
mod under_faults;

use std::future::pending;
use std::task::Poll;
use std::time::Duration;

use lock_runtime::{LockError, LockGuard, LockManager, Ticket, current};
use tests::{
    LONG, Pulse, SetnxServer, Store, TIME_LIMIT, connect, eventually, on_every_store, poll_once,
    queued, release, settled, take, take_turn, within,
};
use tokio::sync::oneshot;

on_every_store! {
    a_ticket_keeps_the_lock_closed_until_it_is_adopted [tickets fencing],
    its_text_is_enough_for_another_process [tickets],
    exactly_one_adopts [tickets],
    waiters_keep_their_places [tickets],
    an_expired_ticket_frees_the_lock_and_says_so [tickets],
    a_revoked_ticket_is_not_adopted [tickets force_release],
    no_body_of_the_former_guard_is_polled [tickets],
    a_ticket_that_nobody_gets_is_taken_back [tickets],
    a_permit_and_a_reader_have_tickets_too [tickets read permits],
    an_adopter_is_a_holder_like_others [tickets],
    an_adopted_lock_becomes_a_ticket_again [tickets],
    what_a_ticket_cannot_hold_is_refused [tickets several_keys],
    what_a_ticket_was_not_made_for_is_refused [tickets read],
    a_lost_lock_becomes_no_ticket [tickets force_release],
}

/// A time that ends within a test.
const SHORT: Duration = Duration::from_millis(300);

async fn issue(guard: LockGuard, time: Duration) -> Ticket {
    let issued = within(TIME_LIMIT, guard.into_ticket(time)).await;
    issued.expect("it is held")
}

async fn adopt(locks: &LockManager, ticket: &Ticket) -> Result<LockGuard, LockError> {
    within(TIME_LIMIT, locks.adopt(ticket).ttl(LONG).acquire()).await
}

async fn is_refused(locks: &LockManager, ticket: &Ticket) {
    let refused = adopt(locks, ticket).await;
    match refused {
        Err(LockError::InvalidTicket { key, .. }) => assert_eq!(&key, ticket.key()),
        other => panic!("{other:?}"),
    }
}

async fn is_closed(locks: &LockManager) {
    let request = locks.lock("key").ttl(LONG).try_once();
    let refused = within(TIME_LIMIT, request.acquire()).await;
    assert!(
        matches!(refused, Err(LockError::Contended { .. })),
        "{refused:?}"
    );
}

async fn a_ticket_keeps_the_lock_closed_until_it_is_adopted(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let (fence, ticket) = loop {
        let guard = take(&locks, "key", SHORT).await;
        let fence = guard.fencing_token();
        // The machine may stand still for longer than the lease.
        if let Ok(ticket) = within(TIME_LIMIT, guard.into_ticket(LONG)).await {
            break (fence, ticket);
        }
    };
    // Longer than the lease that it takes the place of.
    tokio::time::sleep(2 * SHORT).await;
    for locks in [&locks, &others] {
        is_closed(locks).await;
        let status = locks.status("key").await.unwrap();
        let [holder] = &status.holders[..] else {
            panic!("{status:?}")
        };
        assert!(status.is_held() && holder.ticket, "{status:?}");
        assert!(!holder.cooling_down && holder.fencing_token.is_none());
        let left = holder.remaining.expect("it ends");
        assert!(left > LONG / 2 && left <= LONG, "{left:?}");
        assert_eq!(holder.process, Some(std::process::id()));
        let shown = format!("{status:?}");
        let secret = ticket.to_string();
        let (secret, _) = secret.split_once('-').expect("a secret");
        assert!(!shown.contains(secret), "{shown}");
    }
    let guard = adopt(&others, &ticket).await.unwrap();
    assert!(guard.is_held() && guard.fencing_token() > fence);
    assert!(!others.status("key").await.unwrap().holders[0].ticket);
    is_closed(&locks).await;
    let fence = guard.fencing_token().get();
    release(guard).await;
    assert!(take_turn(&locks, "key").await > fence);
    assert_eq!(store.traces().await, [""; 0]);
}

async fn its_text_is_enough_for_another_process(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let text = issue(take(&locks, "key", LONG).await, LONG)
        .await
        .to_string();
    locks.shutdown().await;
    let ticket: Ticket = text.parse().unwrap();
    assert_eq!(ticket.key(), "key");
    release(adopt(&others, &ticket).await.unwrap()).await;
}

async fn exactly_one_adopts(store: Store) {
    let managers = [store.manager().await, store.manager().await];
    for _ in 0..5 {
        let ticket = issue(take(&managers[0], "key", LONG).await, LONG).await;
        let adopters = (0..20).map(|at| {
            let request = managers[at % 2].adopt(&ticket).ttl(LONG);
            tokio::spawn(request.acquire())
        });
        let mut guards = Vec::new();
        for adopter in adopters.collect::<Vec<_>>() {
            match within(TIME_LIMIT, adopter).await.expect("no panic") {
                Ok(guard) => guards.push(guard),
                Err(LockError::InvalidTicket { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!(guards.len(), 1, "{guards:?}");
        release(guards.pop().expect("one")).await;
        is_refused(&managers[0], &ticket).await;
    }
}

async fn waiters_keep_their_places(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let guard = take(&locks, "key", LONG).await;
    let wait = |locks: &LockManager| locks.lock("key").ttl(LONG).wait_forever();
    let mut first = queued(&others, wait(&others)).await;
    let ticket = issue(guard, LONG).await;
    let mut second = queued(&locks, wait(&locks)).await;
    let guard = adopt(&locks, &ticket).await.unwrap();
    settled(&others).await;
    assert!(poll_once(&mut first).await.is_pending());
    release(guard).await;
    let guard = within(TIME_LIMIT, first).await.unwrap();
    assert!(poll_once(&mut second).await.is_pending());
    release(guard).await;
    release(within(TIME_LIMIT, second).await.unwrap()).await;
}

async fn an_expired_ticket_frees_the_lock_and_says_so(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let ticket = issue(take(&locks, "key", LONG).await, SHORT).await;
    let waiter = others.lock("key").ttl(LONG).wait_forever().acquire();
    let guard = within(TIME_LIMIT, waiter).await.unwrap();
    is_refused(&locks, &ticket).await;
    assert!(guard.is_held());
    release(guard).await;
    is_refused(&locks, &ticket).await;
    let ticket = issue(take(&locks, "alone", LONG).await, SHORT).await;
    let free = async || !locks.status("alone").await.unwrap().is_held();
    eventually(TIME_LIMIT, free).await;
    is_refused(&locks, &ticket).await;
    take_turn(&others, "alone").await;
    assert_eq!(store.traces().await, [""; 0]);
}

async fn a_revoked_ticket_is_not_adopted(store: Store) {
    let locks = store.manager().await;
    let ticket = issue(take(&locks, "key", LONG).await, LONG).await;
    let waiter = queued(&locks, locks.lock("key").ttl(LONG).wait_forever()).await;
    assert_eq!(locks.force_release("key").await.unwrap(), 1);
    release(within(TIME_LIMIT, waiter).await.unwrap()).await;
    is_refused(&locks, &ticket).await;
}

async fn no_body_of_the_former_guard_is_polled(store: Store) {
    let locks = store.manager().await;
    let guard = take(&locks, "key", LONG).await;
    let joined = async || {
        let joined = guard.hold(async { current() }).await.unwrap();
        joined.expect("the body runs under the lock")
    };
    let (at_work, joined) = (joined().await, joined().await);
    let (begins, begun) = oneshot::channel();
    let body = tokio::spawn(async move {
        let work = async {
            begins.send(()).unwrap();
            pending::<()>().await;
        };
        at_work.hold(work).await
    });
    within(TIME_LIMIT, begun).await.unwrap();
    let ticket = issue(guard, LONG).await;
    let stopped = within(TIME_LIMIT, body).await.unwrap();
    assert!(matches!(stopped, Err(LockError::Lost { .. })));
    assert!(!joined.is_held());
    let pulse = Pulse::default();
    let stopped = within(TIME_LIMIT, joined.hold(pulse.beat(&joined))).await;
    assert!(matches!(stopped, Err(LockError::Lost { .. })));
    assert!(pulse.polls().last.is_none(), "it was polled");
    let adopted = adopt(&locks, &ticket).await.unwrap();
    assert!(!joined.is_held() && adopted.is_held());
    release(adopted).await;
}

async fn a_ticket_that_nobody_gets_is_taken_back(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let mut unpolled = Box::pin(take(&locks, "key", LONG).await.into_ticket(LONG));
    drop(unpolled);
    take(&others, "key", LONG).await.release();
    // It has been asked for, and its answer may have come.
    unpolled = Box::pin(take(&locks, "key", LONG).await.into_ticket(LONG));
    if let Poll::Ready(ticket) = poll_once(&mut unpolled).await {
        release(adopt(&locks, &ticket.unwrap()).await.unwrap()).await;
    }
    drop(unpolled);
    release(take(&others, "key", LONG).await).await;
    settled(&locks).await;
    assert_eq!(store.traces().await, [""; 0]);
}

async fn a_permit_and_a_reader_have_tickets_too(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let permit = |locks: &LockManager| locks.lock("permits").permits(2).ttl(LONG).try_once();
    let first = permit(&locks).acquire().await.unwrap();
    let ticket = issue(permit(&locks).acquire().await.unwrap(), LONG).await;
    assert!(permit(&others).acquire().await.is_err());
    let status = others.status("permits").await.unwrap();
    let tickets = status.holders.iter().filter(|it| it.ticket).count();
    assert_eq!((status.holders.len(), tickets), (2, 1), "{status:?}");
    release(first).await;
    let first = permit(&others).acquire().await.unwrap();
    let adopted = adopt(&others, &ticket).await.unwrap();
    is_refused(&locks, &ticket).await;
    assert!(permit(&others).acquire().await.is_err());
    release(first).await;
    release(adopted).await;

    let reader = |locks: &LockManager| locks.lock("readers").read().ttl(LONG).try_once();
    let writer = |locks: &LockManager| locks.lock("readers").write().ttl(LONG).try_once();
    let ticket = issue(reader(&locks).acquire().await.unwrap(), LONG).await;
    release(reader(&others).acquire().await.unwrap()).await;
    assert!(writer(&others).acquire().await.is_err());
    let adopted = adopt(&others, &ticket).await.unwrap();
    release(reader(&locks).acquire().await.unwrap()).await;
    assert!(writer(&locks).acquire().await.is_err());
    release(adopted).await;
    release(writer(&locks).acquire().await.unwrap()).await;
    let ticket = issue(reader(&locks).acquire().await.unwrap(), SHORT).await;
    let free = async || writer(&others).acquire().await.is_ok();
    eventually(TIME_LIMIT, free).await;
    is_refused(&locks, &ticket).await;
}

async fn an_adopter_is_a_holder_like_others(store: Store) {
    let locks = store.manager().await;
    let guard = loop {
        let ticket = issue(take(&locks, "key", LONG).await, SHORT).await;
        // The machine may stand still for longer than the ticket lasts.
        if let Ok(guard) = adopt(&locks, &ticket).await {
            break guard;
        }
    };
    let body = async {
        // Its lease does not end with the ticket.
        tokio::time::sleep(2 * SHORT).await;
        let again = locks.lock("key").acquire().await;
        assert!(matches!(again, Err(LockError::AlreadyHeld { .. })));
    };
    within(TIME_LIMIT, guard.hold(body)).await.unwrap();
    release(guard).await;
}

async fn an_adopted_lock_becomes_a_ticket_again(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let first = issue(take(&locks, "key", LONG).await, LONG).await;
    let second = issue(adopt(&others, &first).await.unwrap(), LONG).await;
    assert_ne!(first, second);
    is_refused(&locks, &first).await;
    release(adopt(&locks, &second).await.unwrap()).await;
}

async fn what_a_ticket_cannot_hold_is_refused(store: Store) {
    let locks = store.manager().await;
    let refused = async |guard: LockGuard, time, why: &str| {
        let refused = within(TIME_LIMIT, guard.into_ticket(time)).await;
        let text = refused.expect_err(why).to_string();
        assert!(text.contains("ticket") && text.contains(why), "{text}");
    };
    let both = locks.lock_all(["a", "b"]).ttl(LONG).acquire().await;
    refused(both.unwrap(), LONG, "several keys").await;
    release(take(&locks, "a", LONG).await).await;
    let guard = take(&locks, "key", LONG).await;
    guard
        .hold(async {
            let joined = current().expect("it runs under the lock");
            refused(joined, LONG, "joined").await;
        })
        .await
        .unwrap();
    assert!(guard.is_held(), "the lock stays with its guard");
    refused(guard, Duration::ZERO, "100ms to 24h").await;
    release(take(&locks, "key", LONG).await).await;
}

async fn what_a_ticket_was_not_made_for_is_refused(store: Store) {
    let locks = store.manager().await;
    let ticket = issue(take(&locks, "key", LONG).await, LONG).await;
    for (request, why) in [
        (locks.adopt(&ticket).read(), "exclusive"),
        (locks.adopt(&ticket).permits(2), "exclusive"),
        (locks.adopt(&ticket).reentrant(), "reentrant"),
    ] {
        let refused = within(TIME_LIMIT, request.acquire()).await;
        let text = refused.expect_err(why).to_string();
        assert!(text.contains("ticket") && text.contains(why), "{text}");
    }
    let changed = ticket.to_string().replace("-x-", "-r-");
    is_refused(&locks, &changed.parse().unwrap()).await;
    release(adopt(&locks, &ticket).await.unwrap()).await;
}

async fn a_lost_lock_becomes_no_ticket(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let guard = take(&locks, "key", LONG).await;
    let waiter = queued(&others, others.lock("key").ttl(LONG).wait_forever()).await;
    others.force_release("key").await.unwrap();
    let next = within(TIME_LIMIT, waiter).await.unwrap();
    let lost = within(TIME_LIMIT, guard.into_ticket(LONG)).await;
    assert!(matches!(lost, Err(LockError::Lost { .. })), "{lost:?}");
    assert!(next.is_held());
    release(next).await;
}

#[tokio::test]
async fn a_store_without_tickets_says_so_and_releases_the_lock() {
    let server = SetnxServer::start().await;
    let locks = connect(tests::Home::url(&server)).await;
    let refused = take(&locks, "key", LONG).await.into_ticket(LONG).await;
    let text = refused.expect_err("it has none").to_string();
    assert!(text.contains("Redis with setnx"), "{text}");
    release(take(&locks, "key", LONG).await).await;
    let memory = connect("memory:").await;
    let ticket = issue(take(&memory, "key", LONG).await, LONG).await;
    let refused = locks.adopt(&ticket).acquire().await;
    let text = refused.expect_err("it has none").to_string();
    assert!(text.contains("Redis with setnx"), "{text}");
}
