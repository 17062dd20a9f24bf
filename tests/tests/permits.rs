//! Promise: at most so many hold the lock at once, and everybody who may does.
//!
//! Section: guarantees.md#every-kind-of-lock
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use std::time::{Duration, UNIX_EPOCH};

use lock_runtime::{LockError, LockGuard, LockManager};
use redis::Value;
use tests::{
    LONG, RedisServer, Store, TIME_LIMIT, Worker, connect, eventually, on_every_store, poll_once,
    queued, release, settled, take_turn, timed, within,
};

tests::checks_of_kind!(three_permits, Kind::Permits(3), [permits]);
tests::checks_of_kind!(one_permit, Kind::Permits(1), [permits]);

on_every_store! {
    a_permit_goes_to_the_fourth_at_a_release [permits fencing],
    a_try_is_contended_while_all_are_taken [permits],
    they_are_served_in_order [permits fair],
    one_release_lets_one_in [permits fair],
    another_number_applies_once_nobody_holds_under_the_former [permits fair],
    another_number_waits_behind_who_waits [permits fair],
    no_permits_are_refused [permits],
}

const TTL: Duration = Duration::from_secs(2);

/// Takes a permit that is free.
async fn permit(locks: &LockManager, most: u32) -> LockGuard {
    let request = locks.lock("key").permits(most).ttl(LONG);
    let acquire = request.wait(Duration::ZERO).acquire();
    within(TIME_LIMIT, acquire).await.expect("a permit is free")
}

async fn a_permit_goes_to_the_fourth_at_a_release(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let first = permit(&locks, 3).await;
    let second = permit(&others, 3).await;
    let third = permit(&locks, 3).await;
    let fences = [&first, &second, &third].map(LockGuard::fencing_token);
    assert!(fences.is_sorted() && fences[0] < fences[1] && fences[1] < fences[2]);
    let mut fourth = queued(&others, others.lock("key").permits(3).ttl(LONG)).await;
    assert!(poll_once(&mut fourth).await.is_pending());

    second.release();
    let (took, fourth) = timed(fourth).await;
    let fourth = fourth.unwrap();
    assert!(took < Duration::from_secs(2), "handed over after {took:?}");
    assert!(fourth.fencing_token() > third.fencing_token());
    assert!(first.is_held() && third.is_held() && fourth.is_held());
    for guard in [first, third, fourth] {
        release(guard).await;
    }
    assert_eq!(store.traces().await, [""; 0]);
}

async fn a_try_is_contended_while_all_are_taken(store: Store) {
    let locks = store.manager().await;
    let _held = [permit(&locks, 2).await, permit(&locks, 2).await];
    let request = locks.lock("key").permits(2).wait(Duration::ZERO);
    let error = within(TIME_LIMIT, request.acquire()).await.unwrap_err();
    let LockError::Contended { holder, .. } = error else {
        panic!("{error}");
    };
    let remaining = holder.unwrap().remaining.unwrap();
    assert!(remaining <= LONG && remaining > LONG / 2, "{remaining:?}");
}

async fn they_are_served_in_order(store: Store) {
    let managers = [store.manager().await, store.manager().await];
    let mut holders = vec![permit(&managers[0], 2).await, permit(&managers[1], 2).await];
    let mut waiters = Vec::new();
    for position in 0..6 {
        let locks = &managers[position % 2];
        let request = locks.lock("key").permits(2).ttl(LONG).wait_forever();
        waiters.push(queued(locks, request).await);
    }
    for _ in 0..6 {
        holders.remove(0).release();
        let next = within(TIME_LIMIT, waiters.remove(0)).await.unwrap();
        for waiter in &mut waiters {
            assert!(poll_once(waiter).await.is_pending(), "not its turn");
        }
        holders.push(next);
    }
}

async fn one_release_lets_one_in(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    // The lock is free for all at once, as far as there are permits.
    let writer = locks.lock("key").ttl(LONG).acquire().await.unwrap();
    let mut waiters = Vec::new();
    for _ in 0..5 {
        let request = others.lock("key").permits(3).ttl(LONG).wait_forever();
        waiters.push(queued(&others, request).await);
    }
    release(writer).await;
    let mut rest = waiters.split_off(3);
    let mut holders = Vec::new();
    for waiter in waiters {
        holders.push(within(TIME_LIMIT, waiter).await.unwrap());
    }
    settled(&others).await;
    for waiter in &mut rest {
        assert!(poll_once(waiter).await.is_pending(), "a fourth one");
    }
    release(holders.pop().unwrap()).await;
    let _fourth = within(TIME_LIMIT, rest.remove(0)).await.unwrap();
    settled(&others).await;
    assert!(poll_once(&mut rest[0]).await.is_pending(), "a fourth one");
}

async fn another_number_applies_once_nobody_holds_under_the_former(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let first = permit(&locks, 2).await;
    let second = permit(&others, 2).await;
    let at_once = others.lock("key").permits(3).wait(Duration::ZERO);
    let error = within(TIME_LIMIT, at_once.acquire()).await.unwrap_err();
    assert!(matches!(error, LockError::Contended { .. }), "{error}");
    let three = || others.lock("key").permits(3).ttl(LONG).wait_forever();
    let mut waiters = Vec::new();
    for _ in 0..4 {
        waiters.push(queued(&others, three()).await);
    }
    // The former number waits its turn, behind them.
    let former = locks.lock("key").permits(2).ttl(LONG).wait_forever();
    let mut former = queued(&locks, former).await;
    release(first).await;
    settled(&others).await;
    for waiter in &mut waiters {
        assert!(poll_once(waiter).await.is_pending(), "they mix");
    }
    release(second).await;
    let mut last = waiters.pop().unwrap();
    let mut holders = Vec::new();
    for waiter in waiters {
        holders.push(within(TIME_LIMIT, waiter).await.unwrap());
    }
    settled(&others).await;
    assert!(poll_once(&mut last).await.is_pending(), "a fourth one");
    assert!(poll_once(&mut former).await.is_pending(), "they mix");
    release(holders.pop().unwrap()).await;
    let last = within(TIME_LIMIT, last).await.unwrap();
    for holder in holders {
        release(holder).await;
    }
    settled(&others).await;
    assert!(poll_once(&mut former).await.is_pending(), "they mix");
    release(last).await;
    release(within(TIME_LIMIT, former).await.unwrap()).await;
    take_turn(&locks, "key").await;
    assert_eq!(store.traces().await, [""; 0]);
}

async fn another_number_waits_behind_who_waits(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let writer = locks.lock("key").ttl(LONG).acquire().await.unwrap();
    let two = queued(
        &locks,
        locks.lock("key").permits(2).ttl(LONG).wait_forever(),
    );
    let two = two.await;
    let three = others.lock("key").permits(3).ttl(LONG).wait_forever();
    let mut three = queued(&others, three).await;
    release(writer).await;
    let two = within(TIME_LIMIT, two).await.unwrap();
    settled(&others).await;
    assert!(poll_once(&mut three).await.is_pending(), "they mix");
    release(two).await;
    assert!(within(TIME_LIMIT, three).await.unwrap().is_held());
}

async fn no_permits_are_refused(store: Store) {
    let locks = store.manager().await;
    let request = locks.lock("key").permits(0);
    let error = within(TIME_LIMIT, request.acquire()).await.unwrap_err();
    let invalid =
        matches!(&error, LockError::InvalidOptions { setting, .. } if *setting == "permits");
    assert!(invalid, "{error}");
    release(permit(&locks, u32::MAX).await).await;
}

#[tokio::test]
async fn crashes_cost_each_a_permit_for_its_own_ttl() {
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let alive = locks.lock("key").permits(3).ttl(TTL).acquire();
    let alive = alive.await.unwrap();
    let url = server.url();
    let mut dead = Vec::new();
    for ttl in ["2000", "60000"] {
        let args = ["holder", &url, "permits:3", "key", ttl];
        let mut worker = Worker::spawn(env!("CARGO_BIN_EXE_worker"), args).await;
        worker.fence().await;
        dead.push(worker);
    }
    let request = locks.lock("key").permits(3).ttl(TTL).wait_forever();
    let (first, second) = (request, locks.lock("key").permits(3).wait_forever());
    let first = queued(&locks, first).await;
    let mut second = queued(&locks, second).await;
    for worker in &mut dead {
        worker.kill().await;
    }
    let (took, first) = timed(first).await;
    assert!(took <= TTL + Duration::from_secs(1), "after {took:?}");
    assert!(alive.is_held() && first.unwrap().is_held());
    // The first one's permit is free again, the other one's is not.
    assert!(within(TIME_LIMIT, &mut second).await.unwrap().is_held());
    let status = locks.status("key").await.unwrap();
    assert_eq!(status.holders.len(), 2, "{status:?}");
}

#[tokio::test]
async fn the_permit_of_a_holder_that_crashed_is_free_for_a_try_when_its_lease_has_ended() {
    let server = RedisServer::start().await;
    let locks = connect(server.url()).await;
    let alive = permit(&locks, 2).await;
    let args = ["holder", &server.url(), "permits:2", "key", "1000"];
    let mut worker = Worker::spawn(env!("CARGO_BIN_EXE_worker"), args).await;
    worker.fence().await;
    worker.kill().await;
    // Nobody asks for the lock meanwhile, so the server still keeps the dead holder.
    let holders = "lock:{key}:h";
    let ended = async || {
        let now = UNIX_EPOCH.elapsed().unwrap().as_millis().to_string();
        server.cmd(&["ZCOUNT", holders, "0", &now]).await == Value::Int(1)
    };
    eventually(TIME_LIMIT, ended).await;
    assert_eq!(server.cmd(&["ZCARD", holders]).await, Value::Int(2));
    let second = permit(&locks, 2).await;
    assert!(alive.is_held() && second.is_held());
}
