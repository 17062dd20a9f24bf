//! Promise: at most so many hold the lock at once, and everybody who may does.
//!
//! Section: guarantees.md#every-kind-of-lock
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use std::time::{Duration, UNIX_EPOCH};

use lock_runtime::{LockError, LockGuard, LockManager, LockRequest, distributed_lock, inspect};
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
    another_kind_is_contended_behind_a_permit_that_has_waited [permits read],
    no_permits_are_refused [permits],
    several_are_taken_all_or_none [permits take],
    a_waiter_for_several_gets_its_turn [permits take fair],
    several_are_freed_together [permits take force_release],
    several_cool_down_together [permits take min_hold],
    a_status_counts_the_permits [permits take list],
    what_nobody_can_take_is_refused [permits take],
    a_call_within_another_takes_no_more [permits take],
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

async fn another_kind_is_contended_behind_a_permit_that_has_waited(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let one = || locks.lock("key").permits(1).ttl(LONG).wait_forever();
    let first = within(TIME_LIMIT, one().acquire()).await.unwrap();
    let next = queued(&locks, one()).await;
    release(first).await;
    let permit = within(TIME_LIMIT, next).await.unwrap();
    settled(&locks).await;
    let request = |wait| others.lock("key").ttl(LONG).wait(wait);
    is_contended(|wait| request(wait).write()).await;
    is_contended(|wait| request(wait).read()).await;
    is_contended(|wait| request(wait).permits(2)).await;
    release(permit).await;
}

/// On a busy machine, a wait may end before the store has answered.
async fn is_contended(request: impl Fn(Duration) -> LockRequest) {
    let mut outcomes = Vec::new();
    for wait in [400, 2_000, 5_000].map(Duration::from_millis) {
        match within(TIME_LIMIT, request(wait).acquire()).await {
            Err(LockError::Contended { .. }) => return,
            outcome => outcomes.push(outcome.err()),
        }
    }
    panic!("{outcomes:?}");
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

fn several(locks: &LockManager, take: u32) -> LockRequest {
    locks.lock("key").permits(4).take(take).ttl(LONG)
}

async fn take_now(locks: &LockManager, take: u32) -> LockGuard {
    let acquire = several(locks, take).try_once().acquire();
    within(TIME_LIMIT, acquire).await.expect("they are free")
}

async fn is_refused(locks: &LockManager, take: u32) {
    let refused = within(TIME_LIMIT, several(locks, take).try_once().acquire()).await;
    let error = refused.expect_err("they are taken");
    assert!(matches!(error, LockError::Contended { .. }), "{error}");
}

async fn several_are_taken_all_or_none(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let three = take_now(&locks, 3).await;
    is_refused(&others, 2).await;
    let one = take_now(&others, 1).await;
    is_refused(&locks, 1).await;
    assert!(three.fencing_token() < one.fencing_token());
    release(one).await;
    is_refused(&others, 2).await;
    release(three).await;
    let pair = [take_now(&locks, 2).await, take_now(&others, 2).await];
    is_refused(&locks, 1).await;
    for guard in pair {
        release(guard).await;
    }
    release(take_now(&locks, 4).await).await;
    assert_eq!(store.traces().await, [""; 0]);
}

async fn a_waiter_for_several_gets_its_turn(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let mut holders = vec![take_now(&locks, 2).await, take_now(&others, 1).await];
    let mut large = queued(&others, several(&others, 3).wait_forever()).await;
    // One would fit in.
    let mut small = queued(&locks, several(&locks, 1).wait_forever()).await;
    settled(&locks).await;
    assert!(poll_once(&mut small).await.is_pending(), "it overtakes");
    release(holders.pop().unwrap()).await;
    settled(&others).await;
    assert!(poll_once(&mut large).await.is_pending(), "two are free");
    release(holders.pop().unwrap()).await;
    let large = within(TIME_LIMIT, large).await.unwrap();
    let small = within(TIME_LIMIT, small).await.unwrap();
    assert!(large.is_held() && small.is_held());
    is_refused(&locks, 1).await;
    release(large).await;
    release(take_now(&locks, 3).await).await;
    release(small).await;
}

async fn several_are_freed_together(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let ttl = Duration::from_millis(300);
    let fixed = several(&locks, 3).ttl(ttl).renew(false).acquire();
    let fixed = within(TIME_LIMIT, fixed).await.unwrap();
    let next = several(&others, 4).wait_forever().acquire();
    let next = within(TIME_LIMIT, next).await.unwrap();
    assert!(!fixed.is_held());
    assert_eq!(others.force_release("key").await.unwrap(), 1);
    within(TIME_LIMIT, next.lost()).await;
    let renewed = several(&locks, 4).ttl(TTL).wait_forever().acquire();
    let renewed = within(TIME_LIMIT, renewed).await.unwrap();
    let again = async {
        tokio::time::sleep(TTL + TTL / 2).await;
        is_refused(&others, 1).await;
    };
    within(TIME_LIMIT, renewed.hold(again)).await.unwrap();
    release(renewed).await;
}

async fn several_cool_down_together(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let acquire = several(&locks, 3).min_hold(LONG).acquire();
    release(within(TIME_LIMIT, acquire).await.unwrap()).await;
    is_refused(&others, 2).await;
    let one = take_now(&others, 1).await;
    is_refused(&locks, 1).await;
    release(one).await;
    let status = others.status("key").await.unwrap();
    assert!(
        status.is_cooling_down() && status.holders.len() == 1,
        "{status:?}"
    );
}

async fn a_status_counts_the_permits(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let three = take_now(&locks, 3).await;
    let one = take_now(&others, 1).await;
    let mut waiter = queued(&others, several(&others, 2).wait_forever()).await;
    let status = within(TIME_LIMIT, others.status("key")).await.unwrap();
    let mut taken: Vec<_> = status.holders.iter().map(|it| it.permits).collect();
    taken.sort_unstable();
    assert_eq!((&taken[..], status.waiting), (&[1, 3][..], 1), "{status:?}");
    assert_eq!(status.kind, Some(inspect::Kind::Permits(4)));
    assert_eq!(status.waiters[0].kind, inspect::Kind::Permits(4));
    let overview = within(TIME_LIMIT, others.overview("key")).await.unwrap();
    let lock = &overview.locks[0];
    assert_eq!((lock.held_by, lock.holders.len()), (2, 2), "{lock:?}");
    let taken: u32 = lock.holders.iter().map(|it| it.permits).sum();
    assert_eq!(taken, 4, "{lock:?}");
    release(one).await;
    assert!(poll_once(&mut waiter).await.is_pending());
    release(three).await;
    release(within(TIME_LIMIT, waiter).await.unwrap()).await;
}

async fn what_nobody_can_take_is_refused(store: Store) {
    let locks = store.manager().await;
    let refused = async |request: LockRequest, setting: &str, why: &str| {
        let error = within(TIME_LIMIT, request.acquire()).await.expect_err(why);
        let text = error.to_string();
        assert!(matches!(error, LockError::InvalidOptions { .. }), "{text}");
        assert!(text.contains(setting) && text.contains(why), "{text}");
    };
    refused(several(&locks, 5), "take", "at most `permits`").await;
    refused(several(&locks, 0), "take", "at least 1").await;
    refused(
        several(&locks, 1000).permits(2000),
        "take",
        "less than 1000",
    )
    .await;
    refused(locks.lock("key").take(2), "take", "give `permits`").await;
    let guard = take_now(&locks, 2).await;
    let ticket = within(TIME_LIMIT, guard.into_ticket(LONG)).await;
    let text = ticket.expect_err("two permits").to_string();
    assert!(text.contains("several permits"), "{text}");
    release(take_now(&locks, 4).await).await;
}

async fn a_call_within_another_takes_no_more(store: Store) {
    let locks = store.manager().await;
    let guard = take_now(&locks, 2).await;
    let body = async {
        let inner = |take| several(&locks, take).reentrant().acquire();
        assert!(inner(2).await.unwrap().is_held());
        assert!(inner(1).await.unwrap().is_held());
        let more = inner(3).await;
        assert!(
            matches!(more, Err(LockError::AlreadyHeld { .. })),
            "{more:?}"
        );
    };
    within(TIME_LIMIT, guard.hold(body)).await.unwrap();
    release(guard).await;
}

const LARGE: u32 = 3;

struct Printers {
    locks: LockManager,
    take: u32,
}

impl Printers {
    #[distributed_lock(key = "key", permits = 4, take = 3, wait = "0s", manager = self.locks)]
    async fn by_number(&self) -> Result<(), LockError> {
        Ok(())
    }

    #[distributed_lock(key = "key", permits = 4, take = LARGE, wait = "0s", manager = self.locks)]
    async fn by_constant(&self) -> Result<(), LockError> {
        Ok(())
    }

    #[distributed_lock(key = "key", permits = 4, take = self.take, wait = "0s", manager = self.locks)]
    async fn by_expression(&self) -> Result<(), LockError> {
        Ok(())
    }
}

#[tokio::test]
async fn a_function_takes_several() {
    let locks = connect("memory:").await;
    let mut printers = Printers {
        locks: locks.clone(),
        take: 3,
    };
    for (taken, is_free) in [(1, true), (2, false)] {
        let guard = take_now(&locks, taken).await;
        assert_eq!(printers.by_number().await.is_ok(), is_free);
        assert_eq!(printers.by_constant().await.is_ok(), is_free);
        assert_eq!(printers.by_expression().await.is_ok(), is_free);
        release(guard).await;
    }
    printers.take = 5;
    let invalid = printers.by_expression().await.expect_err("there are four");
    assert!(invalid.to_string().starts_with("invalid take"), "{invalid}");
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
