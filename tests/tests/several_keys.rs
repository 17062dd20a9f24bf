//! Promise: several keys are taken all or none, without deadlocks, and held and lost as one.
//!
//! Section: guarantees.md#every-kind-of-lock
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use std::{sync::Arc, time::Duration};

use lock_runtime::{LockError, LockGuard, LockKey, LockManager, LockRequest};
use tests::{
    LONG, Monitor, Pulse, RedisServer, Store, TIME_LIMIT, Worker, connect, eventually,
    kinds::{Kind, Referee},
    on_every_store, poll_once, queued, release, settled, take, take_turn, timed, within,
};
use tokio::task::{JoinHandle, JoinSet, yield_now};

/// A lease, or the most that it is held, that ends while another key is waited for.
const SHORT: Duration = Duration::from_millis(300);

type Outcome = Result<LockGuard, LockError>;

tests::checks_of_kind!(two_keys, Kind::Several, [several_keys]);

// A store that lists its locks counts who waits for them.
on_every_store! {
    opposite_orders_do_not_deadlock [several_keys],
    all_are_held [several_keys fencing],
    a_failure_of_the_second_lets_go_of_the_first [several_keys],
    a_failure_starts_no_cooldown [several_keys min_hold],
    a_dropped_acquire_lets_go_of_the_first [several_keys list],
    a_name_that_is_given_twice_counts_once [several_keys],
    none_is_refused [several_keys],
    one_wrong_name_takes_none [several_keys],
    the_wait_is_for_all_of_them [several_keys],
    the_loss_of_one_stops_the_body [several_keys force_release],
    what_is_revoked_meanwhile_is_taken_anew [several_keys force_release fair],
    a_fixed_lease_that_ends_meanwhile_is_taken_anew [several_keys list],
    what_reaches_its_max_hold_meanwhile_is_taken_anew [several_keys list],
    nothing_is_taken_anew_once_the_wait_is_over [several_keys],
    the_time_waited_counts_for_all_of_them [several_keys],
    who_waits_behind_several_keys_gets_a_larger_token [several_keys fencing fair],
    one_token_of_each_set_grows_on_every_key [several_keys fencing fair],
}

fn names(keys: impl IntoIterator<Item = impl AsRef<str>>) -> Vec<String> {
    keys.into_iter().map(|it| it.as_ref().to_owned()).collect()
}

async fn opposite_orders_do_not_deadlock(store: Store) {
    let managers = [store.manager().await, store.manager().await];
    let mut tasks = JoinSet::new();
    for number in 0..64 {
        let locks = managers[number % 2].clone();
        tasks.spawn(async move {
            let keys = match number / 2 % 2 {
                0 => ["a", "b"],
                _ => ["b", "a"],
            };
            for _ in 0..3 {
                let request = locks.lock_all(keys).ttl(LONG).wait(TIME_LIMIT);
                request
                    .run(async |guard| assert!(guard.is_held()))
                    .await
                    .unwrap();
            }
        });
    }
    within(TIME_LIMIT, tasks.join_all()).await;
    for locks in &managers {
        settled(locks).await;
    }
    eventually(TIME_LIMIT, async || store.traces().await.is_empty()).await;
    for key in ["a", "b"] {
        let status = managers[0].status(key).await.unwrap();
        assert!(!status.is_held() && status.waiting == 0, "{status:?}");
    }
}

async fn all_are_held(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let before = take_turn(&others, "a").await;
    let guard = locks.lock_all(["b", "c", "a"]).ttl(LONG).acquire();
    let guard = within(TIME_LIMIT, guard).await.unwrap();
    assert_eq!(names(guard.keys().map(LockKey::as_str)), ["c", "b", "a"]);
    assert_eq!(guard.key().as_str(), "c");
    let fence = guard.fencing_token().get();
    assert!(fence > before);
    assert!(guard.remaining() > LONG / 2);
    for key in ["a", "b", "c"] {
        let other = others.lock(key).wait(Duration::ZERO).acquire();
        assert!(within(TIME_LIMIT, other).await.is_err(), "{key} is free");
    }
    release(guard).await;
    for key in ["a", "b", "c"] {
        assert!(take_turn(&others, key).await > fence);
    }
    assert_eq!(store.traces().await, [""; 0]);
}

/// Nothing but `b` is held, and nobody waits.
async fn only_b_is_held(locks: &LockManager) {
    settled(locks).await;
    for key in ["a", "b", "c"] {
        let status = locks.status(key).await.unwrap();
        assert_eq!(status.is_held(), key == "b", "{status:?}");
        assert_eq!(status.waiting, 0, "{status:?}");
    }
}

async fn a_failure_of_the_second_lets_go_of_the_first(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let _b = others.lock("b").ttl(LONG).acquire().await.unwrap();
    for wait in [Duration::ZERO, Duration::from_millis(200)] {
        let all = locks.lock_all(["a", "b", "c"]).ttl(LONG).wait(wait);
        let error = within(TIME_LIMIT, all.acquire()).await.unwrap_err();
        assert!(matches!(error, LockError::Contended { .. }), "{error}");
        assert_eq!(error.key().unwrap().as_str(), "b");
        only_b_is_held(&locks).await;
    }
}

async fn a_failure_starts_no_cooldown(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let _b = others.lock("b").ttl(LONG).acquire().await.unwrap();
    let all = locks.lock_all(["a", "b"]).ttl(LONG).min_hold(LONG);
    let error = within(TIME_LIMIT, all.wait(Duration::ZERO).acquire())
        .await
        .unwrap_err();
    assert!(matches!(error, LockError::Contended { .. }), "{error}");
    only_b_is_held(&locks).await;
}

async fn a_dropped_acquire_lets_go_of_the_first(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let _b = others.lock("b").ttl(LONG).acquire().await.unwrap();
    let mut all = locks
        .lock_all(["a", "b", "c"])
        .ttl(LONG)
        .wait_forever()
        .acquire();
    let mut polled = async |times| {
        for _ in 0..times {
            assert!(poll_once(&mut all).await.is_pending());
            settled(&others).await;
        }
    };
    // It holds the first and waits for the second, in two steps.
    polled(1).await;
    settled(&locks).await;
    polled(1).await;
    let waits = async || others.status("b").await.unwrap().waiting == 1;
    eventually(TIME_LIMIT, waits).await;
    assert!(others.status("a").await.unwrap().is_held());
    drop(all);
    only_b_is_held(&locks).await;
}

async fn a_name_that_is_given_twice_counts_once(store: Store) {
    let locks = store.manager().await;
    let all = locks
        .lock_all(["b", "a", "b", "a", "b"])
        .wait(Duration::ZERO);
    let guard = within(TIME_LIMIT, all.acquire()).await.unwrap();
    assert_eq!(names(guard.keys().map(LockKey::as_str)), ["b", "a"]);
    release(guard).await;
    let one = locks.lock_all(["a", "a"]).wait(Duration::ZERO);
    let guard = within(TIME_LIMIT, one.acquire()).await.unwrap();
    assert_eq!(names(guard.keys().map(LockKey::as_str)), ["a"]);
    release(guard).await;
    assert_eq!(store.traces().await, [""; 0]);
}

async fn none_is_refused(store: Store) {
    let locks = store.manager().await;
    let none = locks.lock_all([""; 0]).acquire();
    let error = within(TIME_LIMIT, none).await.unwrap_err();
    assert!(matches!(error, LockError::InvalidKey { .. }), "{error}");
}

async fn one_wrong_name_takes_none(store: Store) {
    let locks = store.manager().await;
    for wrong in [String::new(), "x".repeat(1025)] {
        let all = locks.lock_all(["a".to_owned(), wrong, "z".to_owned()]);
        let error = within(TIME_LIMIT, all.ttl(LONG).acquire())
            .await
            .unwrap_err();
        assert!(matches!(error, LockError::InvalidKey { .. }), "{error}");
        assert_eq!(store.traces().await, [""; 0]);
    }
    take_turn(&locks, "a").await;
}

async fn the_wait_is_for_all_of_them(store: Store) {
    const WAIT: Duration = Duration::from_millis(1500);
    let (locks, others) = (store.manager().await, store.manager().await);
    let a = others.lock("a").ttl(LONG).acquire().await.unwrap();
    let _b = others.lock("b").ttl(LONG).acquire().await.unwrap();
    let all = queued(&locks, locks.lock_all(["a", "b"]).ttl(LONG).wait(WAIT)).await;
    let late = async {
        tokio::time::sleep(WAIT * 2 / 3).await;
        release(a).await;
    };
    let (took, (outcome, ())) = timed(async { tokio::join!(all, late) }).await;
    let error = outcome.unwrap_err();
    assert!(matches!(error, LockError::Contended { .. }), "{error}");
    assert!(took < WAIT * 5 / 3, "waited {took:?}, each key anew");
    settled(&locks).await;
    take_turn(&others, "a").await;
}

async fn the_loss_of_one_stops_the_body(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    for lost in ["a", "b", "c"] {
        let all = locks.lock_all(["a", "b", "c"]).ttl(LONG).wait(TIME_LIMIT);
        let guard = all.acquire().await.unwrap();
        let fence = guard.fencing_token();
        let pulse = Pulse::default();
        let body = tokio::spawn({
            let pulse = pulse.clone();
            async move { guard.hold(pulse.beat(&guard)).await }
        });
        within(TIME_LIMIT, pulse.reaches(3)).await;
        assert_eq!(others.force_release(lost).await.unwrap(), 1);
        let Err(error) = within(TIME_LIMIT, body).await.unwrap();
        let LockError::Lost {
            key,
            fencing_token: of,
            ..
        } = error
        else {
            panic!("{error}");
        };
        assert_eq!((key.as_str(), of), (lost, fence));
        // The others are let go with it.
        settled(&locks).await;
        for key in ["a", "b", "c"] {
            take_turn(&others, key).await;
        }
    }
    assert_eq!(store.traces().await, [""; 0]);
}

/// Begins to take `a` and `b`; returns when it has `a` and waits for `b`.
async fn waits_for_b(others: &LockManager, request: LockRequest) -> JoinHandle<Outcome> {
    let all = tokio::spawn(request.acquire());
    let waits = async || others.status("b").await.unwrap().waiting == 1;
    eventually(TIME_LIMIT, waits).await;
    all
}

async fn what_is_revoked_meanwhile_is_taken_anew(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let b = others.lock("b").ttl(LONG).acquire().await.unwrap();
    let request = locks.lock_all(["a", "b"]).ttl(LONG).wait_forever();
    let all = waits_for_b(&others, request).await;
    let next = queued(&others, others.lock("a").ttl(LONG).wait_forever()).await;
    assert_eq!(others.force_release("a").await.unwrap(), 1);
    let a = within(TIME_LIMIT, next).await.unwrap();
    // It goes back to the first key, and leaves the queue of the second.
    let waiters = async |key| others.status(key).await.unwrap().waiting;
    let back = async || (waiters("a").await, waiters("b").await) == (1, 0);
    eventually(TIME_LIMIT, back).await;
    release(b).await;
    release(a).await;
    let all = within(TIME_LIMIT, all).await.unwrap().unwrap();
    assert!(all.is_held());
    release(all).await;
    assert_eq!(store.traces().await, [""; 0]);
}

/// Takes `a` for [`SHORT`] again and again until `b` is free.
async fn is_taken_anew(store: Store, request: impl Fn(LockRequest) -> LockRequest) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let b = others.lock("b").ttl(LONG).acquire().await.unwrap();
    let all = request(locks.lock_all(["a", "b"]).wait(TIME_LIMIT));
    let all = waits_for_b(&others, all).await;
    tokio::time::sleep(3 * SHORT).await;
    assert!(!all.is_finished());
    release(b).await;
    let all = within(TIME_LIMIT, all).await.unwrap().unwrap();
    // On a slow machine it may have ended by now.
    all.release_confirmed().await.unwrap();

    let _b = others.lock("b").ttl(LONG).acquire().await.unwrap();
    let all = request(locks.lock_all(["a", "b"]).wait(3 * SHORT));
    let (took, outcome) = timed(all.acquire()).await;
    let error = outcome.unwrap_err();
    assert!(matches!(error, LockError::Contended { .. }), "{error}");
    assert!((3 * SHORT..TIME_LIMIT).contains(&took), "{took:?}");
    only_b_is_held(&locks).await;
}

async fn a_fixed_lease_that_ends_meanwhile_is_taken_anew(store: Store) {
    is_taken_anew(store, |request| request.ttl(SHORT).renew(false)).await;
}

async fn what_reaches_its_max_hold_meanwhile_is_taken_anew(store: Store) {
    is_taken_anew(store, |request| request.ttl(LONG).max_hold(SHORT)).await;
}

async fn nothing_is_taken_anew_once_the_wait_is_over(store: Store) {
    const WAIT: Duration = Duration::from_millis(200);
    let (locks, others) = (store.manager().await, store.manager().await);
    let _b = others.lock("b").ttl(LONG).acquire().await.unwrap();
    let moment = Duration::from_millis(10);
    let all = locks.lock_all(["a", "b"]).max_hold(moment);
    let error = within(TIME_LIMIT, all.wait(WAIT).acquire())
        .await
        .unwrap_err();
    let LockError::Contended { waited, .. } = error else {
        panic!("{error}");
    };
    assert!(waited >= WAIT, "{waited:?}");
}

async fn the_time_waited_counts_for_all_of_them(store: Store) {
    const WAIT: Duration = Duration::from_secs(1);
    let (locks, others) = (store.manager().await, store.manager().await);
    let a = others.lock("a").ttl(LONG).acquire().await.unwrap();
    let _b = others.lock("b").ttl(LONG).acquire().await.unwrap();
    let all = queued(&locks, locks.lock_all(["a", "b"]).wait(WAIT)).await;
    let late = async {
        tokio::time::sleep(WAIT / 2).await;
        release(a).await;
    };
    let (outcome, ()) = within(TIME_LIMIT, async { tokio::join!(all, late) }).await;
    let error = outcome.unwrap_err();
    let LockError::Contended { key, waited, .. } = error else {
        panic!("{error}");
    };
    assert_eq!(key.as_str(), "b");
    assert!(waited >= WAIT, "{waited:?}");
}

/// A cluster counts each lock alone, so the tokens of different keys do not compare.
fn counts_each_lock_alone(locks: &LockManager) -> bool {
    locks.capabilities().store == "Redis Cluster"
}

// Section: guarantees.md#fencing-tokens-grow
async fn who_waits_behind_several_keys_gets_a_larger_token(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    if counts_each_lock_alone(&locks) {
        return;
    }
    for keys in [&["a"][..], &["0", "a"]] {
        let b = take(&others, "b", LONG).await;
        let request = locks.lock_all(["a", "b", "c"]).ttl(LONG).wait(TIME_LIMIT);
        let all = waits_for_b(&others, request).await;
        // It waits before `c` is asked for.
        let next = others.lock_all(keys).ttl(LONG).wait(TIME_LIMIT);
        let next = tokio::spawn(next.acquire());
        let waits = async || others.status("a").await.unwrap().waiting == 1;
        eventually(TIME_LIMIT, waits).await;
        release(b).await;
        let all = within(TIME_LIMIT, all).await.unwrap().unwrap();
        let token = all.fencing_token();
        release(all).await;
        let next = within(TIME_LIMIT, next).await.unwrap().unwrap();
        assert!(next.fencing_token() > token, "{next:?} after {token}");
        release(next).await;
    }
}

// Section: guarantees.md#fencing-tokens-grow
/// A resource that remembers one number for each key refuses nobody whose turn it is.
async fn one_token_of_each_set_grows_on_every_key(store: Store) {
    const KEYS: [&str; 4] = ["a", "b", "c", "d"];
    let resources = Arc::new(Referee::default());
    let mut tasks = JoinSet::new();
    for _ in 0..3 {
        let locks = store.manager().await;
        if counts_each_lock_alone(&locks) {
            return;
        }
        for _ in 0..6 {
            let (locks, resources) = (locks.clone(), Arc::clone(&resources));
            tasks.spawn(async move {
                for _ in 0..15 {
                    let keys = fastrand::choose_multiple(KEYS, fastrand::usize(1..=3));
                    let request = locks.lock_all(&keys).ttl(LONG).wait(LONG);
                    let (request, kind) = match fastrand::u8(..4) {
                        0 => (request.read(), Kind::Reader),
                        _ => (request, Kind::Writer),
                    };
                    let guard = request.acquire().await.unwrap();
                    for key in &keys {
                        resources.enter(key, kind, guard.fencing_token());
                    }
                    yield_now().await;
                    for key in &keys {
                        resources.leave(key, kind);
                    }
                    guard.release();
                }
            });
        }
    }
    within(LONG, tasks.join_all()).await;
}

#[tokio::test]
async fn what_ends_while_the_process_is_stopped_is_taken_anew() {
    let server = RedisServer::start().await;
    let others = connect(server.url()).await;
    let b = others.lock("b").ttl(LONG).acquire().await.unwrap();
    let mut worker = Worker::locker(env!("CARGO_BIN_EXE_worker"), &server.url()).await;
    worker.send("all it 300 a b").await;
    let waits = async || others.status("b").await.unwrap().waiting == 1;
    eventually(TIME_LIMIT, waits).await;
    worker.pause();
    let a = others.lock("a").ttl(LONG).wait_forever().acquire();
    let a = within(TIME_LIMIT, a).await.unwrap();
    worker.resume();
    let waits = async || others.status("a").await.unwrap().waiting == 1;
    eventually(TIME_LIMIT, waits).await;
    let fence = a.fencing_token().get();
    release(b).await;
    release(a).await;
    assert!(worker.fence().await > fence);
}

/// The names of the owner keys that scripts were called with, in order.
async fn called(monitor: &mut Monitor, server: &RedisServer) -> Vec<String> {
    let commands = monitor.commands(server).await;
    let scripts = commands.iter().filter(|it| it[0] == "evalsha");
    let keys = scripts.flat_map(|it| it[3..].iter().take(it[2].parse().unwrap()));
    let owners = keys.filter(|key| key.ends_with('}'));
    owners.cloned().collect()
}

#[tokio::test]
async fn they_are_taken_in_order_and_released_in_reverse() {
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let mut monitor = server.monitor().await;
    let request = locks.lock_all(["c", "a", "b"]).ttl(LONG);
    let guard = request.acquire().await.unwrap();
    let taken = called(&mut monitor, &server).await;
    assert_eq!(taken, ["a", "b", "c"].map(RedisServer::owner_key));
    release(guard).await;
    let released = called(&mut monitor, &server).await;
    assert_eq!(released, ["c", "b", "a"].map(RedisServer::owner_key));
}

#[tokio::test]
async fn a_request_may_name_very_many_keys() {
    let locks = connect("memory:").await;
    // If each key looked at all before it, this would take far longer than a test may.
    let keys = names((0..20_000).map(|number| number.to_string()));
    let acquire = locks.lock_all(&keys).ttl(LONG).acquire();
    release(within(LONG, acquire).await.unwrap()).await;
}
