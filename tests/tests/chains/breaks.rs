//! A chain ends in the middle: by force, with the lock, its connection or its process.

use std::{
    cell::Cell,
    time::{Duration, Instant},
};

use lock_runtime::LockError;
use tests::{LONG, PATIENCE, Proxy, RedisServer, Worker, connect, eventually, take, within};
use tokio::sync::watch;

use crate::{KEY, Line};

#[tokio::test]
async fn a_forced_release_ends_one_and_the_others_keep_their_places() {
    let mut line = Line::new().await;
    let (a, b, guard) = (
        line.manager().await,
        line.manager().await,
        line.hold().await,
    );
    let forced = tokio::spawn({
        let request = a.lock(KEY).ttl(LONG).wait_forever();
        request.run(async |_| std::future::pending::<()>().await)
    });
    line.server.in_line(KEY, 1).await;
    line.join(&a, &["a1", "a2", "a3"]).await;
    line.join(&b, &["b1", "b2", "b3"]).await;
    guard.release();
    line.server.in_line(KEY, 3).await;
    assert_eq!(b.force_release(KEY).await.unwrap(), 1);
    let lost = within(PATIENCE, forced).await.unwrap();
    assert!(matches!(lost, Err(LockError::Lost { .. })), "{lost:?}");
    line.all().await;
    let mut order = line.order();
    assert_eq!(order.len(), 6, "{order:?}");
    order.retain(|name| name.starts_with('a'));
    assert_eq!(order, ["a1", "a2", "a3"]);
}

#[tokio::test]
async fn the_loss_of_the_lock_is_told_to_all_who_follow() {
    let mut line = Line::new().await;
    let (a, b, guard) = (
        line.manager().await,
        line.manager().await,
        line.hold().await,
    );
    let ttl = Duration::from_millis(600);
    let lost = tokio::spawn({
        let request = a.lock(KEY).ttl(ttl).wait_forever();
        request.run(async |_| std::future::pending::<()>().await)
    });
    line.server.in_line(KEY, 1).await;
    line.join_as(&a, &["a1", "a2"], |it| {
        it.ttl(Duration::from_millis(600)).wait_forever()
    })
    .await;
    guard.release();
    line.server.in_line(KEY, 0).await;
    // As when the server has forgotten it.
    line.server
        .cmd(&["DEL", &RedisServer::owner_key(KEY)])
        .await;
    let taken = take(&b, KEY, LONG).await;
    let lost = within(PATIENCE, lost).await.unwrap();
    assert!(matches!(lost, Err(LockError::Lost { .. })), "{lost:?}");
    line.server.in_line(KEY, 2).await;
    assert!(line.order().is_empty(), "they wait in line again");
    let fence = taken.fencing_token().get();
    taken.release();
    line.all().await;
    assert_eq!(line.order(), ["a1", "a2"]);
    assert!(line.had.lock().unwrap()[0].1 > fence);
}

/// A process with a chain, and one that waits behind it. The process stops before it hears
/// of its grant.
async fn stopped_chain() -> (Line, Worker) {
    let mut line = Line::new().await;
    let program = env!("CARGO_BIN_EXE_worker");
    let mut other = Worker::locker(program, &line.server.url()).await;
    let (b, guard) = (line.manager().await, line.hold().await);
    for place in 1..=20 {
        other.send(&format!("pass {place} {KEY}")).await;
        line.server.in_line(KEY, place).await;
    }
    line.join(&b, &["b1", "b2"]).await;
    other.pause();
    guard.release();
    // All of them are handed it, and none is there.
    line.server.in_line(KEY, 2).await;
    (line, other)
}

#[tokio::test]
async fn a_process_that_stops_before_its_chain_begins_costs_one_grant() {
    let (mut line, mut other) = stopped_chain().await;
    let started = Instant::now();
    line.all().await;
    let took = started.elapsed();
    assert!(took < Duration::from_secs(6), "{took:?}");
    other.resume();
    let mut last = line.had.lock().unwrap()[1].1;
    for place in 1..=20 {
        let text = within(PATIENCE, other.line()).await;
        let fence = text.strip_prefix(&format!("{place} granted "));
        let fence: u64 = fence.unwrap_or_else(|| panic!("{text}")).parse().unwrap();
        assert!(fence > last, "{text}, after {last}");
        last = fence;
    }
}

/// For how many ms the lock is taken.
async fn left(line: &Line) -> i64 {
    let left = line
        .server
        .cmd(&["PTTL", &RedisServer::owner_key(KEY)])
        .await;
    redis::from_redis_value(left).unwrap()
}

/// Returns when the lease of the lock has been renewed.
async fn renewed(line: &Line) {
    let least = Cell::new(i64::MAX);
    eventually(PATIENCE, async || {
        let left = left(line).await;
        let before = least.replace(least.get().min(left));
        // Between two looks it only becomes less.
        left > before.saturating_add(100)
    })
    .await;
}

/// A process that passes a lock on, in leases of a minute, and stops while it does.
#[tokio::test]
async fn a_process_that_stops_in_a_chain_costs_one_grant() {
    const TURNS: u64 = 60;
    const GRANT: i64 = 3_000;
    let mut line = Line::new().await;
    let program = env!("CARGO_BIN_EXE_worker");
    let mut other = Worker::locker(program, &line.server.url()).await;
    let b = line.manager().await;
    // A holder that has the lock for long on a busy machine renews it for all of its lease, as everybody may.
    for attempt in 1.. {
        let guard = line.hold().await;
        other.send(&format!("turns {TURNS} {KEY} 30")).await;
        line.server.in_line(KEY, TURNS).await;
        line.join(&b, &["b1", "b2"]).await;
        guard.release();
        renewed(&line).await;
        other.pause();
        if left(&line).await <= GRANT {
            break;
        }
        assert!(attempt < 5, "they cost {} ms", left(&line).await);
        other.resume();
        line.all().await;
        line.server.in_line(KEY, 0).await;
        line.had.lock().unwrap().clear();
    }
    let stopped = Instant::now();
    line.all().await;
    let took = stopped.elapsed();
    assert!(took < Duration::from_secs(6), "{took:?}");
    assert_eq!(line.order(), ["b1", "b2"]);
}

#[tokio::test]
async fn a_process_that_dies_in_a_chain_costs_one_grant() {
    let (mut line, mut other) = stopped_chain().await;
    other.kill().await;
    let started = Instant::now();
    line.all().await;
    let took = started.elapsed();
    assert!(took < Duration::from_secs(6), "{took:?}");
}

#[tokio::test]
async fn a_connection_that_breaks_in_a_chain_costs_nobody_its_place() {
    let mut line = Line::new().await;
    line.may_go = watch::Sender::new(0);
    let proxy = Proxy::start(line.server.addr());
    let (a, b, guard) = (
        connect(proxy.url()).await,
        line.manager().await,
        line.hold().await,
    );
    let mut names: Vec<_> = (1..=8).map(|number| format!("a{number}")).collect();
    names.extend((1..=4).map(|number| format!("b{number}")));
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    line.join(&a, &names[..8]).await;
    line.join(&b, &names[8..]).await;
    guard.release();
    for count in 1..=4 {
        line.entered(count).await;
        proxy.cut().await;
        // Those who have not had it are back before it is passed on.
        line.server.in_line(KEY, 12 - count as u64).await;
        line.may_go.send_replace(count);
    }
    line.may_go.send_replace(usize::MAX);
    line.all().await;
    assert_eq!(line.order(), names);
}
