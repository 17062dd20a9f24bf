//! Downgrades while the slot of the lock moves to another node.
//!
//! Section: guarantees.md#when-locks-move-in-a-cluster

use std::sync::Arc;

use lock_runtime::{LockError, LockGuard};
use tests::{ClusterFleet, LONG, TIME_LIMIT, connect, eventually, queued, release, take, within};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::{read, waits, write};

/// How far the move is when the writer asks.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stage {
    /// The keys are at the node that they leave.
    Begun,
    /// Only `ASK` leads to the keys.
    Moved,
    /// The client knows the former node.
    Ended,
}

#[tokio::test]
async fn a_downgrade_asked_for_before_its_keys_move() {
    goes_on(Stage::Begun).await;
}

#[tokio::test]
async fn a_downgrade_asked_for_when_its_keys_have_moved() {
    goes_on(Stage::Moved).await;
}

#[tokio::test]
async fn a_downgrade_asked_for_when_its_slot_has_moved() {
    goes_on(Stage::Ended).await;
}

async fn goes_on(stage: Stage) {
    let fleet = ClusterFleet::start().await;
    let (locks, others) = (connect(fleet.url()).await, connect(fleet.url()).await);
    let slot = fleet.slot_of("key").await;
    let from = fleet.master_of("key").await;
    let to = (from + 1) % 3;
    let writer = take(&locks, "key", LONG).await;
    let token = writer.fencing_token();
    let next = queued(&others, read(&others)).await;
    let mut last = queued(&others, write(&others)).await;

    let start = Arc::new(Notify::new());
    let started = Arc::clone(&start);
    let downgrading = tokio::spawn(async move {
        started.notified().await;
        writer.downgrade().await
    });
    let asks_at = |present| {
        if present == stage {
            start.notify_one();
        }
        present == stage
    };
    fleet.begin_move(slot, to).await;
    if asks_at(Stage::Begun) {
        refused_or_done(&fleet, from, &downgrading).await;
    }
    fleet.move_keys(slot, from, to).await;
    if asks_at(Stage::Moved) {
        refused_or_done(&fleet, to, &downgrading).await;
    }
    fleet.end_move(slot, from, to).await;
    asks_at(Stage::Ended);

    let reader = within(TIME_LIMIT, downgrading).await.expect("no panic");
    let reader = reader.expect("it is held");
    assert_eq!(reader.fencing_token(), token, "{stage:?}");
    let next = within(TIME_LIMIT, next).await.expect("it enters beside it");
    assert!(reader.is_held() && next.fencing_token() > token);
    waits(&others, &mut last).await;
    release(reader).await;
    waits(&others, &mut last).await;
    release(next).await;
    release(within(TIME_LIMIT, last).await.expect("it is next")).await;
    assert!(fleet.nodes()[to].owner("key").await.is_none());
}

/// A node has refused to do it with a part of the keys, or has done it: a key that does not exist does not move.
async fn refused_or_done(
    fleet: &ClusterFleet,
    node: usize,
    asked: &JoinHandle<Result<LockGuard, LockError>>,
) {
    let node = &fleet.nodes()[node];
    let refused = async || asked.is_finished() || node.errors("TRYAGAIN").await > 0;
    eventually(TIME_LIMIT, refused).await;
}
