//! Slots that move while their locks are held and waited for.
//!
//! Section: guarantees.md#when-locks-move-in-a-cluster

use std::time::Duration;

use lock_runtime::{LockManager, LockRequest};
use tests::{
    ClusterFleet, LONG, RedisServer, Register, TIME_LIMIT, connect, granted, queue, release, take,
    take_turn, within,
};
use tokio::task::JoinSet;

use crate::{TTL, renewed};

#[tokio::test]
async fn a_lease_is_renewed_in_every_stage_of_a_move() {
    let fleet = ClusterFleet::start().await;
    let locks = connect(fleet.url()).await;
    let kinds: [fn(LockRequest) -> LockRequest; 3] =
        [|it| it, LockRequest::read, |it| it.permits(2)];
    for kind in kinds {
        let request = kind(locks.lock("key").ttl(TTL));
        let guard = within(TIME_LIMIT, request.acquire()).await.unwrap();
        let slot = fleet.slot_of("key").await;
        let from = fleet.master_of("key").await;
        let to = (from + 1) % 3;

        fleet.begin_move(slot, to).await;
        renewed(&guard).await;
        assert!(fleet.move_keys(slot, from, to).await > 0);
        // Only by `ASK`: the node that it leaves still serves the slot.
        renewed(&guard).await;
        fleet.end_move(slot, from, to).await;
        renewed(&guard).await;
        assert!(fleet.nodes()[to].owner("key").await.is_some());
        release(guard).await;
        assert!(fleet.nodes()[to].owner("key").await.is_none());
    }
}

#[tokio::test]
async fn waiters_keep_their_order_while_their_slot_moves() {
    let fleet = ClusterFleet::start().await;
    let locks = connect(fleet.url()).await;
    let slot = fleet.slot_of("key").await;
    let from = fleet.master_of("key").await;
    let to = (from + 1) % 3;
    let holder = take(&locks, "key", LONG).await;
    let mut waiters = Vec::new();
    for position in 1..=3 {
        // Two of one manager that came at the same time would be granted the lock together.
        let other = connect(fleet.url()).await;
        let waiter = queue(&fleet.nodes()[from], &other, "key", LONG, position).await;
        waiters.push((other, waiter));
    }

    fleet.move_slot(slot, to).await;
    release(holder).await;
    let mut last = 0;
    for (_locks, waiter) in waiters {
        let guard = granted(TIME_LIMIT, waiter).await;
        let fence = guard.fencing_token().get();
        assert!(fence > last, "{fence} after {last}");
        last = fence;
        release(guard).await;
    }
}

#[tokio::test]
async fn a_release_is_done_whole_or_not_at_all_while_keys_are_on_both_nodes() {
    let fleet = ClusterFleet::start().await;
    let locks = connect(fleet.url()).await;
    let slot = fleet.slot_of("key").await;
    let from = fleet.master_of("key").await;
    let to = (from + 1) % 3;
    let holder = take(&locks, "key", LONG).await;
    let waiter = queue(&fleet.nodes()[from], &locks, "key", LONG, 1).await;

    fleet.begin_move(slot, to).await;
    let port = fleet.nodes()[to].port().to_string();
    let queue = RedisServer::queue_key("key");
    let migrate = ["MIGRATE", "127.0.0.1", &port, &queue, "0", "5000"];
    fleet.nodes()[from].cmd(&migrate).await;

    let mut releasing = Box::pin(holder.release_confirmed());
    let refused = async {
        let source = &fleet.nodes()[from];
        tests::eventually(TIME_LIMIT, async || source.errors("TRYAGAIN").await > 0).await;
    };
    tokio::select! {
        released = &mut releasing => panic!("released in between: {released:?}"),
        () = refused => {}
    }
    let owner = fleet.nodes()[from].owner("key").await;
    assert!(owner.is_some(), "the half that is there was carried out");

    fleet.move_keys(slot, from, to).await;
    fleet.end_move(slot, from, to).await;
    assert!(within(TIME_LIMIT, releasing).await.expect("an answer"));
    release(granted(TIME_LIMIT, waiter).await).await;
}

#[tokio::test]
async fn a_call_that_was_sent_on_is_carried_out_once() {
    let fleet = ClusterFleet::start().await;
    let locks = connect(fleet.url()).await;
    let from = fleet.master_of("key").await;
    let to = (from + 1) % 3;
    take_turn(&locks, "key").await;
    // A connection that is opened later would begin with a call of its own.
    for node in 0..3 {
        take_turn(&locks, &fleet.key_at(node).await).await;
    }
    fleet.move_slot(fleet.slot_of("key").await, to).await;
    for node in fleet.nodes() {
        node.cmd(&["CONFIG", "RESETSTAT"]).await;
    }
    take_turn(&locks, "key").await;
    assert_eq!(fleet.nodes()[from].calls("evalsha").await, 0);
    assert_eq!(
        fleet.nodes()[to].calls("evalsha").await,
        2,
        "taken and released"
    );
}

#[tokio::test]
async fn a_crowd_that_was_redirected_queues_once() {
    const CROWD: u64 = 256;

    let fleet = ClusterFleet::start().await;
    let (locks, others) = (connect(fleet.url()).await, connect(fleet.url()).await);
    let holder = take(&locks, "key", LONG).await;
    let to = (fleet.master_of("key").await + 1) % 3;
    fleet.move_slot(fleet.slot_of("key").await, to).await;
    let mut crowd = JoinSet::new();
    for _ in 0..CROWD {
        let request = others.lock("key").ttl(LONG).wait(TIME_LIMIT);
        crowd.spawn(async move { request.acquire().await.expect("its turn comes") });
    }
    fleet.nodes()[to].queued("key", CROWD).await;
    let calls = fleet.nodes()[to].calls("evalsha").await;
    assert!(calls < CROWD, "{calls} calls for {CROWD} who join");
    let mut last = holder.fencing_token();
    release(holder).await;
    while let Some(guard) = within(TIME_LIMIT, crowd.join_next()).await {
        let guard = guard.expect("no panic");
        assert!(guard.fencing_token() > last);
        last = guard.fencing_token();
        release(guard).await;
    }
    assert_eq!(fleet.nodes()[to].owner("key").await, None);
}

#[tokio::test]
async fn slots_move_under_load_without_a_lost_lease_or_two_holders() {
    const MOVES: usize = 10;
    let fleet = ClusterFleet::start().await;
    let register = Register::start().await;
    let mut tasks = JoinSet::new();
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let slot = fleet.slot_of("key").await;
    for _ in 0..2 {
        let locks = connect(fleet.url()).await;
        for _ in 0..3 {
            let (locks, stopped) = (locks.clone(), stopped.clone());
            let register = Register::join(register.url()).await;
            tasks.spawn(async move {
                while !*stopped.borrow() {
                    let request = locks.lock("key").ttl(TTL).wait(TIME_LIMIT);
                    let section = request.run(async |guard| {
                        let fence = guard.fencing_token().get();
                        let section = register.enter("key", fence).await;
                        tokio::time::sleep(Duration::from_millis(1)).await;
                        section.leave().await;
                    });
                    section.await.expect("neither lost nor refused");
                }
            });
        }
    }
    let held = connect(fleet.url()).await;
    for _ in 0..MOVES {
        let to = (fleet.master_of("key").await + 1) % 3;
        fleet.move_slot(slot, to).await;
        take_turn_in_queue(&held).await;
    }
    stop.send_replace(true);
    while let Some(task) = tasks.join_next().await {
        task.expect("no panic");
    }
    assert_eq!(register.violations().await, Vec::<String>::new());
    assert!(register.sections().await > MOVES as u64);
    take_turn(&held, "key").await;
}

/// The lock goes on being handed over.
async fn take_turn_in_queue(locks: &LockManager) {
    release(take(locks, "key", TTL).await).await;
}
