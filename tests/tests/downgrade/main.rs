//! Promise: a writer goes on as a reader without a gap, and the readers who are next enter beside it.
//!
//! Section: guarantees.md#from-writer-to-reader
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

mod in_a_cluster;
mod on_etcd_under_faults;
mod on_postgres_under_faults;
mod on_redis_under_faults;
mod on_zookeeper_under_faults;
mod scripts;
mod under_faults;

use std::future::pending;
use std::sync::mpsc;
use std::time::Duration;

use futures_executor::block_on;
use lock_runtime::inspect::Kind;
use lock_runtime::{Acquire, LockError, LockGuard, LockManager, LockRequest, current};
use tests::{
    LONG, Pulse, SetnxServer, Store, TIME_LIMIT, connect, eventually, on_every_store,
    one_turn_within, poll_once, queued, release, settled, take, timed, within,
};
use tokio::sync::oneshot;

on_every_store! {
    readers_who_are_next_enter_beside_it [downgrade],
    nobody_writes_in_between [downgrade fair],
    who_has_waited_is_a_reader_like_others [downgrade fair list],
    readers_behind_a_writer_wait [downgrade fair],
    writers_of_its_process_keep_their_places [downgrade fair],
    the_token_stays_and_later_ones_are_larger [downgrade fencing],
    no_body_of_the_writer_is_polled [downgrade],
    a_body_that_runs_is_not_cut_off [downgrade],
    the_reader_is_a_holder_like_others [downgrade],
    max_hold_counts_from_the_grant [downgrade],
    min_hold_counts_from_the_grant [downgrade min_hold],
    what_is_not_one_writer_is_refused [downgrade permits several_keys],
    a_lost_lock_is_not_downgraded [downgrade force_release],
    a_lock_that_is_revoked_meanwhile_is_lost [downgrade force_release],
    a_downgrade_that_nobody_awaits_releases_the_lock [downgrade],
    a_status_names_the_kind [downgrade list],
    an_asked_writer_is_an_asked_reader [downgrade ask],
}

fn read(locks: &LockManager) -> LockRequest {
    locks.lock("key").read().ttl(LONG).wait_forever()
}

fn write(locks: &LockManager) -> LockRequest {
    locks.lock("key").write().ttl(LONG).wait_forever()
}

async fn downgrade(guard: LockGuard) -> LockGuard {
    let reader = within(TIME_LIMIT, guard.downgrade()).await;
    reader.expect("it is held")
}

/// It does not get the lock, though the store has done all that it was asked for.
async fn waits(locks: &LockManager, waiter: &mut Acquire) {
    settled(locks).await;
    assert!(poll_once(waiter).await.is_pending(), "not its turn");
}

async fn is_refused(guard: LockGuard, why: &str) {
    let refused = within(TIME_LIMIT, guard.downgrade()).await;
    let refused = refused.expect_err(why);
    assert!(matches!(refused, LockError::InvalidOptions { .. }));
    let text = refused.to_string();
    assert!(text.contains("downgrade") && text.contains(why), "{text}");
}

async fn readers_who_are_next_enter_beside_it(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let turn = async || {
        let writer = take(&locks, "key", LONG).await;
        let waiters = [
            queued(&others, read(&others)).await,
            queued(&locks, read(&locks)).await,
        ];
        let reader = downgrade(writer).await;
        let mut longest = Duration::ZERO;
        let mut entered = Vec::new();
        for waiter in waiters {
            let (took, other) = timed(waiter).await;
            let other = other.unwrap();
            assert!(other.is_held() && reader.is_held());
            entered.push(other);
            longest = longest.max(took);
        }
        for other in entered {
            assert!(other.is_held());
            release(other).await;
        }
        let newcomer = within(TIME_LIMIT, read(&others).acquire()).await.unwrap();
        release(newcomer).await;
        release(reader).await;
        longest
    };
    // A waiter that is not notified asks a second after it has joined.
    one_turn_within(Duration::from_millis(900), turn).await;
    settled(&locks).await;
    assert_eq!(store.traces().await, [""; 0]);
}

async fn nobody_writes_in_between(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let writer = take(&locks, "key", LONG).await;
    let mut next = queued(&others, write(&others)).await;
    let reader = downgrade(writer).await;
    waits(&others, &mut next).await;
    assert!(reader.is_held());
    release(reader).await;
    release(within(TIME_LIMIT, next).await.unwrap()).await;
}

async fn who_has_waited_is_a_reader_like_others(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let first = take(&others, "key", LONG).await;
    let next = queued(&locks, write(&locks)).await;
    release(first).await;
    let reader = downgrade(within(TIME_LIMIT, next).await.unwrap()).await;
    // A write that follows the downgrade reaches the store before this.
    settled(&locks).await;
    let status = within(TIME_LIMIT, others.status("key")).await.unwrap();
    assert_eq!(status.kind, Some(Kind::Read), "{status:?}");
    let newcomer = within(TIME_LIMIT, read(&others).acquire()).await.unwrap();
    assert!(reader.is_held());
    release(newcomer).await;
    release(reader).await;
}

async fn readers_behind_a_writer_wait(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let writer = take(&locks, "key", LONG).await;
    let first = queued(&others, read(&others)).await;
    let next = queued(&others, write(&others)).await;
    let mut behind = queued(&others, read(&others)).await;
    let reader = downgrade(writer).await;
    let first = within(TIME_LIMIT, first).await.unwrap();
    waits(&others, &mut behind).await;
    release(reader).await;
    release(first).await;
    let next = within(TIME_LIMIT, next).await.unwrap();
    waits(&others, &mut behind).await;
    release(next).await;
    release(within(TIME_LIMIT, behind).await.unwrap()).await;
}

/// Where the server hands the lock to waiters of one process together, they wait again.
async fn writers_of_its_process_keep_their_places(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let first = take(&locks, "key", LONG).await;
    let second = queued(&locks, write(&locks)).await;
    let mut third = queued(&locks, write(&locks)).await;
    let fourth = queued(&locks, write(&locks)).await;
    let mut behind = queued(&others, read(&others)).await;
    release(first).await;
    let second = within(TIME_LIMIT, second).await.unwrap();
    let fence = second.fencing_token();
    let reader = downgrade(second).await;
    waits(&others, &mut behind).await;
    waits(&locks, &mut third).await;
    assert!(reader.is_held());
    release(reader).await;
    let third = within(TIME_LIMIT, third).await.unwrap();
    assert!(fence < third.fencing_token());
    waits(&others, &mut behind).await;
    release(third).await;
    let fourth = within(TIME_LIMIT, fourth).await.unwrap();
    waits(&others, &mut behind).await;
    release(fourth).await;
    release(within(TIME_LIMIT, behind).await.unwrap()).await;
}

async fn the_token_stays_and_later_ones_are_larger(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let before = take(&locks, "key", LONG).await;
    let mut highest = before.fencing_token();
    release(before).await;
    let writer = take(&locks, "key", LONG).await;
    let token = writer.fencing_token();
    assert!(highest < token);
    let waiter = queued(&others, read(&others)).await;
    let reader = downgrade(writer).await;
    assert_eq!(reader.fencing_token(), token);
    highest = token;
    let newcomer = read(&others).acquire();
    for waiter in [waiter, newcomer] {
        let other = within(TIME_LIMIT, waiter).await.unwrap();
        assert!(token < other.fencing_token());
        highest = highest.max(other.fencing_token());
        release(other).await;
    }
    release(reader).await;
    let next = take(&others, "key", LONG).await;
    assert!(highest < next.fencing_token());
    release(next).await;
}

async fn no_body_of_the_writer_is_polled(store: Store) {
    let locks = store.manager().await;
    let writer = take(&locks, "key", LONG).await;
    let joined = async || {
        let body = async { current().expect("it runs under the lock") };
        writer.hold(body).await.expect("it is held")
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
    let reader = downgrade(writer).await;
    let stopped = within(TIME_LIMIT, body).await.unwrap();
    assert!(matches!(stopped, Err(LockError::Lost { .. })));
    assert!(!joined.is_held() && reader.is_held());
    let pulse = Pulse::default();
    let stopped = within(TIME_LIMIT, joined.hold(pulse.beat(&joined))).await;
    assert!(matches!(stopped, Err(LockError::Lost { .. })));
    assert!(pulse.polls().last.is_none(), "it was polled");
    drop(joined);
    assert!(reader.is_held(), "it releases nothing");
    release(reader).await;
}

async fn a_body_that_runs_is_not_cut_off(store: Store) {
    let locks = store.manager().await;
    let writer = take(&locks, "key", LONG).await;
    let body = async { current().expect("it runs under the lock") };
    let joined = writer.hold(body).await.unwrap();
    let (begins, begun) = mpsc::channel();
    let (goes_on, waits) = mpsc::channel::<()>();
    let body = move || {
        block_on(joined.hold(async move {
            begins.send(()).unwrap();
            let _ = waits.recv();
        }))
    };
    let body = tokio::task::spawn_blocking(body);
    begun.recv().unwrap();
    is_refused(writer, "a body runs").await;
    drop(goes_on);
    let _ = within(TIME_LIMIT, body).await.unwrap();
    release(take(&locks, "key", LONG).await).await;
}

async fn the_reader_is_a_holder_like_others(store: Store) {
    let locks = store.manager().await;
    let ttl = Duration::from_millis(600);
    let writer = take(&locks, "key", ttl).await;
    let reader = downgrade(writer).await;
    let body = async {
        // Its lease is renewed.
        tokio::time::sleep(2 * ttl).await;
        let again = locks.lock("key").read().acquire().await;
        assert!(matches!(again, Err(LockError::AlreadyHeld { .. })));
        // A reader does not do the work of a writer.
        let as_writer = locks.lock("key").reentrant().acquire().await;
        assert!(matches!(as_writer, Err(LockError::AlreadyHeld { .. })));
        let as_reader = locks.lock("key").read().reentrant().acquire().await;
        assert!(as_reader.unwrap().is_held());
    };
    within(TIME_LIMIT, reader.hold(body)).await.unwrap();
    release(reader).await;
    release(take(&locks, "key", LONG).await).await;
}

async fn max_hold_counts_from_the_grant(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let max_hold = Duration::from_secs(1);
    let writer = within(TIME_LIMIT, write(&locks).max_hold(max_hold).acquire()).await;
    let reader = downgrade(writer.unwrap()).await;
    assert!(reader.remaining() <= max_hold);
    let lost = within(TIME_LIMIT, reader.hold(pending::<()>())).await;
    assert!(matches!(lost, Err(LockError::Lost { .. })));
    release(take(&others, "key", LONG).await).await;
}

async fn min_hold_counts_from_the_grant(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let writer = within(TIME_LIMIT, write(&locks).min_hold(LONG).acquire()).await;
    release(downgrade(writer.unwrap()).await).await;
    let status = others.status("key").await.unwrap();
    assert!(status.is_cooling_down(), "{status:?}");
    let refused = write(&others).try_once().acquire();
    assert!(within(TIME_LIMIT, refused).await.is_err());
}

async fn what_is_not_one_writer_is_refused(store: Store) {
    let locks = store.manager().await;
    let reader = within(TIME_LIMIT, read(&locks).acquire()).await;
    is_refused(reader.unwrap(), "only a writer").await;
    let permit = locks.lock("key").permits(2).ttl(LONG).acquire();
    is_refused(within(TIME_LIMIT, permit).await.unwrap(), "only a writer").await;
    let both = locks.lock_all(["a", "key"]).ttl(LONG).acquire();
    is_refused(within(TIME_LIMIT, both).await.unwrap(), "several keys").await;
    let writer = take(&locks, "key", LONG).await;
    let body = async {
        let joined = current().expect("it runs under the lock");
        is_refused(joined, "joined").await;
    };
    writer.hold(body).await.unwrap();
    assert!(writer.is_held(), "the lock stays with its guard");
    release(writer).await;
}

async fn a_lost_lock_is_not_downgraded(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let writer = take(&locks, "key", LONG).await;
    let waiter = queued(&others, write(&others)).await;
    others.force_release("key").await.unwrap();
    let next = within(TIME_LIMIT, waiter).await.unwrap();
    let lost = within(TIME_LIMIT, writer.downgrade()).await;
    assert!(matches!(lost, Err(LockError::Lost { .. })), "{lost:?}");
    assert!(next.is_held());
    release(next).await;
}

async fn a_lock_that_is_revoked_meanwhile_is_lost(store: Store) {
    const TURNS: usize = 10;
    let (locks, others) = (store.manager().await, store.manager().await);
    for _ in 0..TURNS {
        let writer = take(&locks, "key", LONG).await;
        let both = async { tokio::join!(others.force_release("key"), writer.downgrade()) };
        let (revoked, reader) = within(TIME_LIMIT, both).await;
        assert_eq!(revoked.unwrap(), 1);
        match reader {
            Ok(reader) => within(TIME_LIMIT, reader.lost()).await,
            Err(error) => assert!(matches!(error, LockError::Lost { .. }), "{error}"),
        }
    }
}

async fn a_downgrade_that_nobody_awaits_releases_the_lock(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    drop(take(&locks, "key", LONG).await.downgrade());
    release(take(&others, "key", LONG).await).await;
    let mut asked = Box::pin(take(&locks, "key", LONG).await.downgrade());
    drop(poll_once(&mut asked).await);
    drop(asked);
    release(take(&others, "key", LONG).await).await;
    settled(&locks).await;
    assert_eq!(store.traces().await, [""; 0]);
}

async fn a_status_names_the_kind(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let kind = async || {
        let status = within(TIME_LIMIT, others.status("key")).await.unwrap();
        status.kind
    };
    assert_eq!(kind().await, None);
    let writer = take(&locks, "key", LONG).await;
    assert_eq!(kind().await, Some(Kind::Exclusive));
    let reader = downgrade(writer).await;
    assert_eq!(kind().await, Some(Kind::Read));
    let status = others.status("key").await.unwrap();
    assert_eq!(status.holders.len(), 1, "{status:?}");
    let named = async || {
        let overview = others.overview("key").await.unwrap();
        overview.locks.iter().map(|it| it.kind).collect::<Vec<_>>() == [Some(Kind::Read)]
    };
    eventually(TIME_LIMIT, named).await;
    release(reader).await;
}

async fn an_asked_writer_is_an_asked_reader(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let writer = take(&locks, "key", LONG).await;
    others.ask("key").await.unwrap();
    within(TIME_LIMIT, writer.asked()).await;
    let reader = downgrade(writer).await;
    assert!(reader.is_asked());
    release(reader).await;
    let reader = downgrade(take(&locks, "key", LONG).await).await;
    assert!(!reader.is_asked());
    others.ask("key").await.unwrap();
    within(TIME_LIMIT, reader.asked()).await;
    assert!(reader.is_held());
    release(reader).await;
}

#[tokio::test]
async fn a_store_without_readers_says_so_and_releases_the_lock() {
    let server = SetnxServer::start().await;
    let locks = connect(tests::Home::url(&server)).await;
    is_refused(take(&locks, "key", LONG).await, "has no readers").await;
    release(take(&locks, "key", LONG).await).await;
}
