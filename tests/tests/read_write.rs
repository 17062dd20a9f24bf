//! Promise: readers share the lock, a writer is alone with it, and all are served in the order in which they came.
//!
//! Section: guarantees.md#every-kind-of-lock
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use lock_runtime::{Acquire, FencingToken, LockError, LockGuard, LockManager, LockRequest};
use tests::{
    APART, LONG, RedisServer, Store, TIME_LIMIT, Worker, connect, kinds::Kind, on_every_store,
    one_turn_within, poll_once, queued, release, settled, take, take_turn, timed, within,
};
use tokio::{task::JoinSet, time::sleep};

tests::checks_of_kind!(readers, Kind::Reader, [read]);
tests::checks_of_kind!(writers, Kind::Writer, [read]);

on_every_store! {
    readers_share [read fencing],
    tokens_of_readers_lie_between_those_of_the_writers_around_them [read fencing fair],
    readers_who_queue_up_together_enter_together [read],
    a_writer_waits_for_all_readers [read fencing],
    a_reader_waits_behind_a_writer_who_waits [read fair],
    a_mixed_queue_is_served_in_order [read fencing fair],
    a_writer_that_is_dropped_lets_in_the_readers_behind_it [read fair],
    a_writer_that_gives_up_lets_in_the_readers_behind_it [read fair],
    different_kinds_exclude_each_other [read permits],
}

/// A waiter that is not notified asks a second after it has joined.
const ASKED_FOR: Duration = Duration::from_millis(900);

fn read(locks: &LockManager) -> LockRequest {
    locks.lock("key").read().ttl(LONG).wait_forever()
}

fn write(locks: &LockManager) -> LockRequest {
    locks.lock("key").ttl(LONG).wait_forever()
}

async fn take_now(request: LockRequest) -> LockGuard {
    let acquire = request.wait(Duration::ZERO).acquire();
    within(TIME_LIMIT, acquire).await.expect("the lock is free")
}

/// Nobody has got the lock, though the store has done all that it was asked for.
async fn all_wait(locks: &LockManager, waiters: &mut [Acquire]) {
    settled(locks).await;
    for waiter in waiters {
        assert!(poll_once(waiter).await.is_pending(), "not its turn");
    }
}

async fn readers_share(store: Store) {
    let managers = [store.manager().await, store.manager().await];
    let mut readers = Vec::new();
    for number in 0..20 {
        readers.push(take_now(read(&managers[number % 2])).await);
    }
    let writer = managers[0].lock("key").wait(Duration::ZERO).acquire();
    let error = within(TIME_LIMIT, writer).await.unwrap_err();
    assert!(matches!(error, LockError::Contended { .. }), "{error}");
    let fences: Vec<_> = readers.iter().map(LockGuard::fencing_token).collect();
    assert!(fences.windows(2).all(|pair| pair[0] < pair[1]));
    for reader in readers {
        release(reader).await;
    }
    assert_eq!(store.traces().await, [""; 0]);
}

async fn readers_who_queue_up_together_enter_together(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let writer = take_now(write(&locks)).await;
    let mut waiters = Vec::new();
    for number in 0..10 {
        let locks = [&locks, &others][number % 2];
        waiters.push(queued(locks, read(locks)).await);
    }
    let released = Instant::now();
    release(writer).await;
    let mut readers = Vec::new();
    for waiter in waiters {
        readers.push(within(TIME_LIMIT, waiter).await.unwrap());
    }
    // Questions, which each connection asks once a second, would let in one after the other.
    let took = released.elapsed();
    assert!(took < Duration::from_secs(3), "one by one: {took:?}");
    assert!(readers.iter().all(LockGuard::is_held));
}

async fn tokens_of_readers_lie_between_those_of_the_writers_around_them(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let first = take(&locks, "key", LONG).await;
    // The readers are in the queue before its token is counted.
    let before = queued(&others, write(&others)).await;
    let mut waiters = Vec::new();
    for number in 0..10 {
        let locks = [&locks, &others][number % 2];
        waiters.push(queued(locks, read(locks)).await);
    }
    let after = queued(&others, write(&others)).await;
    release(first).await;
    let before = within(TIME_LIMIT, before).await.unwrap();
    let lowest = before.fencing_token();
    release(before).await;
    let mut tokens = Vec::new();
    let mut readers = Vec::new();
    for waiter in waiters {
        let reader = within(TIME_LIMIT, waiter).await.unwrap();
        tokens.push(reader.fencing_token());
        readers.push(reader);
    }
    for reader in readers {
        release(reader).await;
    }
    let highest = within(TIME_LIMIT, after).await.unwrap().fencing_token();
    let between = |token: &FencingToken| lowest < *token && *token < highest;
    assert!(
        tokens.iter().all(between),
        "{tokens:?} between {lowest} and {highest}"
    );
}

async fn a_writer_waits_for_all_readers(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let readers = [&locks, &others, &locks].map(read);
    let mut holders = Vec::new();
    for reader in readers {
        holders.push(take_now(reader).await);
    }
    let last = holders.pop().unwrap();
    let mut writer = [queued(&others, write(&others)).await];
    for reader in holders {
        release(reader).await;
        all_wait(&others, &mut writer).await;
    }
    let fence = last.fencing_token();
    release(last).await;
    let [writer] = writer;
    let (took, writer) = timed(writer).await;
    assert!(writer.unwrap().fencing_token() > fence);
    assert!(took < Duration::from_secs(2), "handed over after {took:?}");
}

async fn a_reader_waits_behind_a_writer_who_waits(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let reader = take_now(read(&locks)).await;
    let writer = queued(&others, write(&others)).await;
    // It would fit in, but the writer would wait for ever.
    let newcomer = locks.lock("key").read().wait(Duration::ZERO).acquire();
    let error = within(TIME_LIMIT, newcomer).await.unwrap_err();
    assert!(matches!(error, LockError::Contended { .. }), "{error}");
    let mut late = [queued(&locks, read(&locks)).await];
    all_wait(&locks, &mut late).await;
    release(reader).await;
    let writer = within(TIME_LIMIT, writer).await.unwrap();
    all_wait(&locks, &mut late).await;
    release(writer).await;
    let [late] = late;
    release(within(TIME_LIMIT, late).await.unwrap()).await;
    assert_eq!(store.traces().await, [""; 0]);
}

async fn a_mixed_queue_is_served_in_order(store: Store) {
    const QUEUE: &str = "rrwrwwrrrwrrwwr";
    let managers = [store.manager().await, store.manager().await];
    let first = take_now(write(&managers[0])).await;
    // Fences grow from each turn to the next; readers beside each other have one turn.
    let turn = |position: usize| {
        let kinds = QUEUE.as_bytes();
        (1..=position)
            .filter(|at| kinds[at - 1..=*at] != *b"rr")
            .count()
    };
    let served = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = JoinSet::new();
    for (position, kind) in QUEUE.chars().enumerate() {
        let locks = &managers[position % 2];
        let request = match kind {
            'r' => read(locks),
            _ => write(locks),
        };
        let waiter = queued(locks, request).await;
        sleep(APART).await;
        let served = Arc::clone(&served);
        tasks.spawn(async move {
            let guard = waiter.await.unwrap();
            served
                .lock()
                .unwrap()
                .push((guard.fencing_token(), position));
            release(guard).await;
        });
    }
    release(first).await;
    within(TIME_LIMIT, tasks.join_all()).await;
    let mut served = served.lock().unwrap().clone();
    served.sort_unstable();
    let turns: Vec<_> = served.iter().map(|(_, position)| turn(*position)).collect();
    assert!(
        turns.is_sorted() && turns.len() == QUEUE.len(),
        "{served:?}"
    );
}

async fn a_writer_that_is_dropped_lets_in_the_readers_behind_it(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let _reader = take_now(read(&locks)).await;
    let turn = async || {
        let writer = queued(&others, write(&others)).await;
        let behind = [
            queued(&locks, read(&locks)).await,
            queued(&others, read(&others)).await,
        ];
        drop(writer);
        let mut longest = Duration::ZERO;
        let mut readers = Vec::new();
        for reader in behind {
            let (took, reader) = timed(reader).await;
            readers.push(reader.unwrap());
            longest = longest.max(took);
        }
        for reader in readers {
            assert!(reader.is_held());
            release(reader).await;
        }
        longest
    };
    one_turn_within(ASKED_FOR, turn).await;
}

async fn a_writer_that_gives_up_lets_in_the_readers_behind_it(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let _reader = take_now(read(&locks)).await;
    let wait = Duration::from_millis(300);
    let turn = async || {
        let writer = queued(&others, write(&others).wait(wait)).await;
        let behind = queued(&locks, read(&locks)).await;
        let joined = Instant::now();
        let error = within(TIME_LIMIT, writer).await.unwrap_err();
        assert!(matches!(error, LockError::Contended { .. }), "{error}");
        let reader = within(TIME_LIMIT, behind).await.unwrap();
        let took = joined.elapsed();
        assert!(reader.is_held());
        release(reader).await;
        took
    };
    one_turn_within(ASKED_FOR, turn).await;
}

async fn different_kinds_exclude_each_other(store: Store) {
    let (locks, others) = (store.manager().await, store.manager().await);
    let kinds = [Kind::Exclusive, Kind::Reader, Kind::Permits(2)];
    for held in kinds {
        for asked in kinds {
            let guard = take_now(held.request(&locks, "key").ttl(LONG)).await;
            let next = asked.request(&others, "key").ttl(LONG);
            if held == asked && held != Kind::Exclusive {
                release(take_now(next).await).await;
                release(guard).await;
                continue;
            }
            let at_once = asked.request(&others, "key").wait(Duration::ZERO);
            let error = within(TIME_LIMIT, at_once.acquire()).await.unwrap_err();
            let contended = matches!(error, LockError::Contended { .. });
            assert!(contended, "{asked:?} beside {held:?}: {error}");
            let next = queued(&others, next).await;
            release(guard).await;
            release(within(TIME_LIMIT, next).await.unwrap()).await;
        }
    }
    assert_eq!(store.traces().await, [""; 0]);
}

#[tokio::test]
async fn a_crashed_reader_costs_its_own_ttl_and_no_questions() {
    let server = RedisServer::start().await;
    let (locks, others) = (connect(server.url()).await, connect(server.url()).await);
    let url = server.url();
    let args = ["holder", &url, "reader", "key", "1000"];
    let mut worker = Worker::spawn(env!("CARGO_BIN_EXE_worker"), args).await;
    worker.fence().await;
    let readers = [
        take_now(read(&locks)).await,
        take_now(read(&others).ttl(Duration::from_secs(2))).await,
    ];
    let mut writer = [queued(&others, write(&others)).await];
    worker.kill().await;
    let gone = async || locks.status("key").await.unwrap().holders.len() == 2;
    tests::eventually(Duration::from_secs(2), gone).await;
    // Who waits goes on to ask once a second, whoever has died.
    let before = server.calls("evalsha").await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    all_wait(&others, &mut writer).await;
    let calls = server.calls("evalsha").await - before;
    assert!(calls < 15, "{calls} calls in two seconds");
    for reader in readers {
        assert!(reader.is_held());
        release(reader).await;
    }
    let [writer] = writer;
    let (took, writer) = timed(writer).await;
    assert!(took < Duration::from_secs(2), "after {took:?}");
    release(writer.unwrap()).await;
    take_turn(&locks, "key").await;
}
