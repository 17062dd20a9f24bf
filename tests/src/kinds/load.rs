//! Exclusion: many tasks of several managers, and a referee among them.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use lock_runtime::LockManager;
use tokio::task::{JoinSet, yield_now};

use super::{Kind, Referee};
use crate::{Store, TIME_LIMIT, eventually, release, settled, take_turn, within};

const MANAGERS: usize = 3;
const TASKS: usize = 8;
const TURNS: usize = 25;
const LIMIT: Duration = Duration::from_secs(120);

/// Nobody is inside who may not be, fences grow, those who may share do, and nothing is left behind.
pub async fn keeps_its_rule_under_load(store: Store, kind: Kind) {
    let referee = Arc::new(Referee::default());
    let mut managers = Vec::new();
    let mut tasks = JoinSet::new();
    for manager in 0..MANAGERS {
        let locks = store.manager().await;
        for task in 0..TASKS {
            let (locks, referee) = (locks.clone(), Arc::clone(&referee));
            tasks.spawn(async move {
                for turn in 0..TURNS {
                    // Two locks, each of which is in the second half of some of the pairs.
                    let key = ["one", "two"][(manager + task + turn) % 2];
                    section(&locks, &referee, key, mixed(kind, task + turn)).await;
                }
            });
        }
        managers.push(locks);
    }
    within(LIMIT, tasks.join_all()).await;

    let turns = MANAGERS * TASKS * TURNS * kind.names("").len();
    assert_eq!(referee.entered(), turns as u64);
    match kind {
        Kind::Permits(most) => assert_eq!(referee.most(), most, "permits lay idle"),
        Kind::Reader => assert!(referee.most() > 2, "readers wait for each other"),
        _ => {}
    }
    for locks in &managers {
        settled(locks).await;
    }
    eventually(TIME_LIMIT, async || store.traces().await.is_empty()).await;
    for name in kind.names("one") {
        take_turn(&managers[0], name).await;
    }
}

/// Readers come with some writers among them, and writers with some readers.
fn mixed(kind: Kind, number: usize) -> Kind {
    match kind {
        Kind::Reader if number.is_multiple_of(6) => Kind::Writer,
        Kind::Writer if number.is_multiple_of(3) => Kind::Reader,
        _ => kind,
    }
}

async fn section(locks: &LockManager, referee: &Referee, key: &str, kind: Kind) {
    let request = match kind {
        // Pairs that overlap, in either order.
        Kind::Several if key == "one" => locks.lock_all(["one:b", "one:a"]),
        Kind::Several => locks.lock_all(["one:b", "two:a"]),
        _ => kind.request(locks, key),
    };
    let guard = request.wait(LIMIT).acquire().await;
    let guard = guard.expect("a turn at last");
    let names: Vec<_> = guard.keys().cloned().collect();
    for name in &names {
        // That of its own: not every store counts all locks together.
        let fence = guard.fencing_token_of(name).expect("it holds it");
        referee.enter(name.as_str(), kind, fence);
    }
    if let Kind::Permits(most) = kind {
        // The first ones stay until all permits are taken, however long others take to come in.
        let start = Instant::now();
        while referee.most() < most && start.elapsed() < TIME_LIMIT {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    // Long enough for others to come in, if they may.
    for _ in 0..3 {
        yield_now().await;
    }
    if matches!(kind, Kind::Reader | Kind::Permits(_)) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(guard.is_held());
    for name in &names {
        referee.leave(name.as_str(), kind);
    }
    if fastrand::bool() {
        guard.release();
    } else {
        release(guard).await;
    }
}
