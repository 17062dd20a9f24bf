//! Locks on several nodes, and nodes that come and go.
//!
//! Section: guarantees.md#when-locks-move-in-a-cluster

use std::time::Duration;

use tests::{ClusterFleet, LONG, TIME_LIMIT, connect, granted, queue, release, take, within};

use crate::{TTL, renewed};

#[tokio::test]
async fn a_node_that_joins_takes_over_locks_and_one_that_leaves_gives_them_back() {
    let mut fleet = ClusterFleet::start().await;
    let locks = connect(fleet.url()).await;
    let holder = take(&locks, "key", TTL).await;
    let home = fleet.master_of("key").await;
    let waiter = queue(&fleet.nodes()[home], &locks, "key", LONG, 1).await;
    let slot = fleet.slot_of("key").await;

    let guest = fleet.add_node().await;
    fleet.move_slot(slot, guest).await;
    renewed(&holder).await;
    assert!(fleet.nodes()[guest].owner("key").await.is_some());

    fleet.move_slot(slot, home).await;
    fleet.remove_node(guest).await;
    renewed(&holder).await;
    release(holder).await;
    release(granted(TIME_LIMIT, waiter).await).await;
}

#[tokio::test]
async fn a_lease_is_renewed_on_a_node_that_has_no_slot_yet() {
    let mut fleet = ClusterFleet::start().await;
    let locks = connect(fleet.url()).await;
    let holder = take(&locks, "key", TTL).await;
    let home = fleet.master_of("key").await;
    let slot = fleet.slot_of("key").await;
    let guest = fleet.add_node().await;
    fleet.begin_move(slot, guest).await;
    fleet.move_keys(slot, home, guest).await;
    // No list of slots names the guest: only `ASK` does.
    renewed(&holder).await;
    fleet.end_move(slot, home, guest).await;
    release(holder).await;
}

#[tokio::test]
async fn several_keys_are_taken_on_different_nodes_and_each_has_its_own_fence() {
    let fleet = ClusterFleet::start().await;
    let locks = connect(fleet.url()).await;
    let mut keys = Vec::new();
    for node in 0..3 {
        keys.push(fleet.key_at(node).await);
    }
    let mut fences = Vec::new();
    for _ in 0..2 {
        let request = locks.lock_all(keys.iter().map(String::as_str)).ttl(LONG);
        let guard = within(TIME_LIMIT, request.acquire()).await.expect("free");
        let each: Vec<_> = guard
            .keys()
            .map(|key| guard.fencing_token_of(key))
            .collect();
        assert!(each.iter().all(Option::is_some), "{each:?}");
        fences.push(each);
        for (node, key) in keys.iter().enumerate() {
            assert!(fleet.nodes()[node].owner(key).await.is_some(), "{key}");
        }
        release(guard).await;
    }
    for (first, second) in fences[0].iter().zip(&fences[1]) {
        assert!(first < second, "{fences:?}");
    }
}

#[tokio::test]
async fn locks_of_all_nodes_are_listed_shown_and_revoked() {
    let fleet = ClusterFleet::start().await;
    let (ours, theirs) = (connect(fleet.url()).await, connect(fleet.url()).await);
    let mut guards = Vec::new();
    for node in 0..3 {
        let key = fleet.key_at(node).await;
        guards.push((take(&ours, &key, LONG).await, key));
    }
    let mut names: Vec<_> = guards.iter().map(|(_, key)| key.clone()).collect();
    names.sort();
    let listed = within(TIME_LIMIT, theirs.list("key-*"))
        .await
        .expect("a list");
    let listed: Vec<_> = listed.iter().map(ToString::to_string).collect();
    assert_eq!(listed, names);

    for (guard, key) in guards {
        let status = within(TIME_LIMIT, theirs.status(&*key))
            .await
            .expect("a status");
        let [holder] = &*status.holders else {
            panic!("{status:?}");
        };
        assert_eq!(
            holder.fencing_token,
            Some(guard.fencing_token()),
            "from the holder itself"
        );
        assert!(holder.since.is_some());
        let removed = within(TIME_LIMIT, theirs.force_release(&*key)).await;
        assert_eq!(removed.expect("an answer"), 1);
        // A second after the message, not with the renewal after a third of the ttl.
        within(Duration::from_secs(5), guard.lost()).await;
    }
}
