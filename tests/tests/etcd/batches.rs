//! Calls that go to a member as one transaction, and what becomes of each of them.
//!
//! Section: etcd.md#what-it-promises

use std::time::Duration;

use lock_runtime::LockManager;
use tests::{
    EtcdCluster, EtcdServer, LONG, Proxy, TIME_LIMIT, connect, release, take, take_turn, within,
};
use tokio::task::JoinSet;

/// Tasks that take a lock of their own so often.
async fn cycles(locks: &LockManager, tasks: usize, each: usize) {
    let mut set = JoinSet::new();
    for task in 0..tasks {
        let locks = locks.clone();
        set.spawn(async move {
            for _ in 0..each {
                release(take(&locks, &format!("key:{task}"), LONG).await).await;
            }
        });
    }
    while let Some(task) = within(3 * TIME_LIMIT, set.join_next()).await {
        task.unwrap();
    }
}

/// How many calls that write were answered.
async fn writes(server: &EtcdServer) -> u64 {
    server.answered("Txn").await + server.answered("DeleteRange").await
}

#[tokio::test]
async fn calls_of_many_tasks_go_together_and_that_of_one_by_itself() {
    const EACH: u64 = 20;
    let Some(server) = EtcdServer::start("calls that go together").await else {
        return;
    };
    let proxy = Proxy::start(server.addr());
    let locks = connect(format!("etcd://{}", proxy.addr())).await;
    take_turn(&locks, "warm").await;
    // A member that is asked for more than it can do answers late.
    proxy.replies().delay(Duration::from_millis(20));
    for (tasks, most) in [(1, 2 * EACH), (64, 64 * EACH / 2)] {
        let (calls, revision) = (writes(&server).await, server.revision().await);
        cycles(&locks, tasks, usize::try_from(EACH).unwrap()).await;
        let calls = writes(&server).await - calls;
        let revisions = server.revision().await - revision;
        let count = EACH * u64::try_from(tasks).unwrap();
        println!("{tasks} tasks: {calls} calls and {revisions} revisions for {count} cycles");
        assert!(calls <= most && revisions <= most, "{calls}, {revisions}");
        assert_eq!(server.keys("lock/key:").await, [""; 0]);
    }
}

#[tokio::test]
async fn a_member_that_takes_few_operations_gets_few() {
    let limits = [("max-txn-ops", "12")];
    let Some(cluster) = EtcdCluster::start_limited("few operations", 1, &limits).await else {
        return;
    };
    let locks = connect(cluster.url()).await;
    cycles(&locks, 64, 3).await;
    assert_eq!(cluster.members[0].keys("lock/key:").await, [""; 0]);
}

#[tokio::test]
async fn a_lease_that_has_ended_fails_nobody_whose_call_went_with_it() {
    let Some(server) = EtcdServer::start("a lease that has ended").await else {
        return;
    };
    let locks = connect(&*server.url()).await;
    // Another ttl has another lease.
    let kept = take(&locks, "kept", LONG / 2).await;
    for _ in 0..3 {
        take_turn(&locks, "warm").await;
        server.revoke_leases("lock//lease-").await;
        within(TIME_LIMIT, cycles(&locks, 32, 1)).await;
    }
    within(TIME_LIMIT, kept.lost()).await;
    assert_eq!(server.keys("lock/key:").await, [""; 0]);
}

#[tokio::test]
async fn answers_that_are_lost_together_make_one_entry_each() {
    const TASKS: usize = 16;
    let Some(server) = EtcdServer::start("answers that are lost together").await else {
        return;
    };
    let proxy = Proxy::start(server.addr());
    let locks = connect(format!("etcd://{}", proxy.addr())).await;
    take_turn(&locks, "warm").await;
    for round in 0..3 {
        proxy.replies().hold();
        let mut set = JoinSet::new();
        for task in 0..TASKS {
            let request = locks.lock(format!("key:{round}:{task}")).ttl(LONG);
            set.spawn(request.wait(TIME_LIMIT).acquire());
        }
        proxy.replies().held().await;
        proxy.cut().await;
        proxy.replies().pass();
        let guards = within(TIME_LIMIT, set.join_all()).await;
        let entries = server.keys(&format!("lock/key:{round}:")).await;
        assert_eq!(entries.len(), TASKS, "{entries:?}");
        for guard in guards {
            release(guard.unwrap()).await;
        }
    }
}
