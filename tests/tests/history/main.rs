//! Promise: a store remembers the last grants of a lock, each with its end, for managers that want it to; for others it
//! writes nothing.
//!
//! Section: guarantees.md#looking-at-a-lock
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use std::sync::Arc;

use lock_runtime::inspect::{Grant, GrantEnd, Kind};
use lock_runtime::{LockError, LockManager};
use tests::{
    LONG, Store, TIME_LIMIT, connect, kinds, on_every_store, queued, release, take, take_turn,
    within,
};
use tokio::{sync::Barrier, task::JoinSet};

mod etcd_server;
mod in_memory;
mod mysql_server;
mod postgres_server;
mod redis_server;

on_every_store! {
    a_release_is_remembered [history],
    a_holder_has_no_end_yet [history],
    a_revocation_is_remembered_whoever_revokes [history force_release],
    so_many_grants_are_remembered_and_no_more [history],
    each_of_those_who_wait_in_one_process_is_remembered [history],
    each_lock_of_a_batch_is_remembered [history],
    those_who_share_a_lock_are_remembered_one_by_one [history read permits],
    a_cooldown_begins_with_a_release [history min_hold],
    a_ticket_ends_a_grant_and_its_adopter_begins_one [history tickets read permits force_release],
    locks_have_histories_of_their_own [history several_keys],
    nothing_is_remembered_for_managers_that_do_not_ask [history],
    a_history_that_cannot_be_kept_is_refused_at_the_start,
}

const MANY: usize = 20;

/// A manager that keeps a history.
async fn keeping(store: &Store, grants: usize) -> LockManager {
    connect(store.config().history(grants)).await
}

async fn history(locks: &LockManager, key: &str) -> Vec<Grant> {
    within(TIME_LIMIT, locks.history(key)).await.unwrap()
}

fn ends(grants: &[Grant]) -> Vec<Option<GrantEnd>> {
    grants.iter().map(|it| it.end).collect()
}

fn fences(grants: &[Grant]) -> Vec<u64> {
    grants.iter().map(|it| it.fencing_token.get()).collect()
}

async fn a_release_is_remembered(store: Store) {
    let (locks, others) = (keeping(&store, MANY).await, store.manager().await);
    assert_eq!(history(&others, "key").await, []);
    assert_eq!(others.last("key").await.unwrap(), None);
    let mut granted = Vec::new();
    for function in ["shop::first", "shop::second"] {
        let request = locks.lock("key").ttl(LONG).function(function);
        let guard = within(TIME_LIMIT, request.acquire()).await.unwrap();
        granted.insert(0, guard.fencing_token().get());
        release(guard).await;
    }
    let known = history(&others, "key").await;
    assert_eq!(fences(&known), granted);
    assert_eq!(ends(&known), [Some(GrantEnd::Released); 2]);
    let functions: Vec<_> = known.iter().map(|it| it.function.as_deref()).collect();
    assert_eq!(functions, [Some("shop::second"), Some("shop::first")]);
    let mut moments = Vec::new();
    for grant in known.iter().rev() {
        assert_eq!(grant.process, Some(std::process::id()), "{grant:?}");
        assert!(grant.host.is_some() && !grant.id.is_empty(), "{grant:?}");
        assert_eq!(grant.kind, Kind::Exclusive);
        moments.extend([grant.since, grant.until.unwrap()]);
        assert!(grant.duration().is_some());
    }
    assert!(moments.is_sorted(), "{known:?}");
    let ago = moments[0].elapsed().unwrap_or_default();
    assert!(ago < TIME_LIMIT, "{known:?}");
    let last = others.last("key").await.unwrap();
    assert_eq!(last.as_ref(), known.first());
}

async fn a_holder_has_no_end_yet(store: Store) {
    let locks = keeping(&store, MANY).await;
    take_turn(&locks, "key").await;
    let guard = take(&locks, "key", LONG).await;
    let known = history(&locks, "key").await;
    assert_eq!(ends(&known), [None, Some(GrantEnd::Released)]);
    assert_eq!((known[0].until, known[0].duration()), (None, None));
    assert_eq!(known[0].fencing_token, guard.fencing_token());
    release(guard).await;
    let known = history(&locks, "key").await;
    assert_eq!(ends(&known), [Some(GrantEnd::Released); 2]);
}

async fn a_revocation_is_remembered_whoever_revokes(store: Store) {
    let (locks, others) = (keeping(&store, MANY).await, store.manager().await);
    let guard = take(&locks, "key", LONG).await;
    let next = queued(&locks, locks.lock("key").ttl(LONG).wait_forever()).await;
    assert_eq!(others.force_release("key").await.unwrap(), 1);
    let next = within(TIME_LIMIT, next).await.unwrap();
    let known = history(&others, "key").await;
    assert_eq!(ends(&known), [None, Some(GrantEnd::Revoked)], "{known:?}");
    let fences_of = [next.fencing_token().get(), guard.fencing_token().get()];
    assert_eq!(fences(&known), fences_of);
    // A lock that nobody keeps a history of gets none by a revocation.
    let _other = take(&others, "other", LONG).await;
    assert_eq!(others.force_release("other").await.unwrap(), 1);
    assert_eq!(history(&others, "other").await, []);
}

async fn so_many_grants_are_remembered_and_no_more(store: Store) {
    let locks = keeping(&store, 3).await;
    let mut granted = Vec::new();
    for _ in 0..8 {
        granted.insert(0, take_turn(&locks, "key").await);
    }
    let known = history(&locks, "key").await;
    assert_eq!(fences(&known), granted[..3]);
    assert_eq!(ends(&known), [Some(GrantEnd::Released); 3]);
}

async fn each_of_those_who_wait_in_one_process_is_remembered(store: Store) {
    let locks = keeping(&store, MANY).await;
    let first = take(&locks, "key", LONG).await;
    let mut waiters = Vec::new();
    for _ in 0..5 {
        waiters.push(queued(&locks, locks.lock("key").ttl(LONG).wait_forever()).await);
    }
    let mut granted = vec![first.fencing_token().get()];
    release(first).await;
    for waiter in waiters {
        let guard = within(TIME_LIMIT, waiter).await.unwrap();
        granted.insert(0, guard.fencing_token().get());
        release(guard).await;
    }
    let known = history(&locks, "key").await;
    assert_eq!(fences(&known), granted);
    assert_eq!(ends(&known), [Some(GrantEnd::Released); 6]);
}

/// Calls that are made at once may go to the server together.
async fn each_lock_of_a_batch_is_remembered(store: Store) {
    let locks = keeping(&store, MANY).await;
    take_turn(&locks, "warm").await;
    let keys: Vec<_> = (0..MANY).map(|it| it.to_string()).collect();
    let mut cycles = JoinSet::new();
    let all_have_theirs = Arc::new(Barrier::new(MANY));
    for key in keys.clone() {
        let (locks, all_have_theirs) = (locks.clone(), Arc::clone(&all_have_theirs));
        cycles.spawn(async move {
            let guard = take(&locks, &key, LONG).await;
            all_have_theirs.wait().await;
            release(guard).await;
        });
    }
    within(TIME_LIMIT, cycles.join_all()).await;
    for key in &keys {
        let known = history(&locks, key).await;
        assert_eq!(ends(&known), [Some(GrantEnd::Released)], "{key}");
    }
}

async fn those_who_share_a_lock_are_remembered_one_by_one(store: Store) {
    let locks = keeping(&store, MANY).await;
    for (key, kind) in [
        ("read", kinds::Kind::Reader),
        ("permits", kinds::Kind::Permits(2)),
    ] {
        let request = || kind.request(&locks, key).ttl(LONG).acquire();
        let first = within(TIME_LIMIT, request()).await.unwrap();
        let second = within(TIME_LIMIT, request()).await.unwrap();
        release(first).await;
        let known = history(&locks, key).await;
        assert_eq!(ends(&known), [None, Some(GrantEnd::Released)], "{known:?}");
        assert!(known.iter().all(|it| it.kind != Kind::Exclusive));
        release(second).await;
        let known = history(&locks, key).await;
        assert_eq!(ends(&known), [Some(GrantEnd::Released); 2], "{known:?}");
    }
}

async fn a_cooldown_begins_with_a_release(store: Store) {
    let locks = keeping(&store, MANY).await;
    let request = locks.lock("key").ttl(LONG).min_hold(LONG);
    release(within(TIME_LIMIT, request.acquire()).await.unwrap()).await;
    assert!(locks.status("key").await.unwrap().is_cooling_down());
    let known = history(&locks, "key").await;
    assert_eq!(ends(&known), [Some(GrantEnd::Released)]);
    assert_eq!(locks.force_release("key").await.unwrap(), 1);
    assert_eq!(history(&locks, "key").await, known);
}

async fn a_ticket_ends_a_grant_and_its_adopter_begins_one(store: Store) {
    let (locks, others) = (keeping(&store, MANY).await, keeping(&store, MANY).await);
    for (key, kind) in [
        ("exclusive", kinds::Kind::Exclusive),
        ("reader", kinds::Kind::Reader),
        ("permit", kinds::Kind::Permits(2)),
    ] {
        let request = kind.request(&locks, key).ttl(LONG);
        let guard = within(TIME_LIMIT, request.acquire()).await.unwrap();
        let first = guard.fencing_token().get();
        let ticket = within(TIME_LIMIT, guard.into_ticket(LONG)).await.unwrap();
        assert_eq!(
            ends(&history(&others, key).await),
            [Some(GrantEnd::Released)]
        );
        let adopted = within(TIME_LIMIT, others.adopt(&ticket).ttl(LONG).acquire()).await;
        let adopted = adopted.unwrap();
        let known = history(&locks, key).await;
        assert_eq!(ends(&known), [None, Some(GrantEnd::Released)], "{known:?}");
        assert_eq!(fences(&known), [adopted.fencing_token().get(), first]);
        // A ticket that is revoked is nobody's grant.
        let ticket = within(TIME_LIMIT, adopted.into_ticket(LONG)).await.unwrap();
        assert_eq!(locks.force_release(ticket.key()).await.unwrap(), 1);
        let known = history(&locks, key).await;
        assert_eq!(ends(&known), [Some(GrantEnd::Released); 2], "{known:?}");
    }
}

async fn locks_have_histories_of_their_own(store: Store) {
    let locks = keeping(&store, MANY).await;
    let both = locks.lock_all(["a", "b"]).ttl(LONG);
    drop(within(TIME_LIMIT, both.acquire()).await.unwrap());
    take_turn(&locks, "a").await;
    assert_eq!(history(&locks, "a").await.len(), 2);
    assert_eq!(history(&locks, "b").await.len(), 1);
    assert_eq!(history(&locks, "c").await, []);
}

async fn nothing_is_remembered_for_managers_that_do_not_ask(store: Store) {
    let locks = store.manager().await;
    for _ in 0..2 {
        take_turn(&locks, "key").await;
    }
    assert_eq!(history(&locks, "key").await, []);
    assert_eq!(store.traces().await, [""; 0]);
}

async fn a_history_that_cannot_be_kept_is_refused_at_the_start(store: Store) {
    let config = store.config().history(1);
    if store.can().contains(&"history") {
        config.validate().unwrap();
        let too_long = store.config().history(1_001).validate();
        assert!(matches!(too_long, Err(LockError::InvalidOptions { .. })));
        return;
    }
    let refused = LockManager::connect(config).await.unwrap_err();
    assert!(
        matches!(refused, LockError::InvalidOptions { .. }),
        "{refused}"
    );
    let locks = store.manager().await;
    let refused = locks.history("key").await.unwrap_err();
    let text = refused.to_string();
    assert!(
        text.contains("history") && text.contains("does not support"),
        "{text}"
    );
}
