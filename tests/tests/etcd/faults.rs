//! Members that are killed, stopped and cut off, and connections that are cut.
//!
//! Section: etcd.md#what-it-promises

use std::time::Duration;

use lock_runtime::{LockConfig, LockError};
use tests::{
    EtcdCluster, EtcdServer, LONG, Proxy, TIME_LIMIT, connect, eventually, poll_once, queued,
    release, take, take_turn, within,
};
use tokio::time::sleep;

use crate::{TTL, is_renewed, load::Load, patient};

/// A lease that outlasts the election of another leader, also on a busy machine.
const PAST_ELECTIONS: Duration = Duration::from_secs(15);

/// Stops the leader for longer than an election takes, so often, while there is load.
async fn stale_leaders(cluster: &EtcdCluster, load: &Load, times: u32) {
    for _ in 0..times {
        let leader = &cluster.members[cluster.leader().await];
        leader.stop();
        sleep(TTL.mul_f64(0.5 + fastrand::f64())).await;
        leader.resume();
        load.go_on(20).await;
    }
}

/// Load with leases that a leader does not end when it goes on: see docs/etcd.md#former-leaders.
async fn load_past_stops(cluster: &EtcdCluster) -> Load {
    let ends_leases = cluster.members[0].ends_leases_of_others().await;
    let ttl = if ends_leases { PAST_ELECTIONS } else { TTL };
    Load::start_for(&cluster.url(), ttl).await
}

#[tokio::test]
async fn a_lock_and_its_queue_outlive_the_leader() {
    let Some(mut cluster) = EtcdCluster::start("the death of a leader", 3).await else {
        return;
    };
    let (locks, others) = (patient(&cluster.url()).await, patient(&cluster.url()).await);
    let guard = take(&locks, "key", LONG).await;
    let mut waiter = queued(&others, others.lock("key").ttl(LONG).wait_forever()).await;
    let leader = cluster.leader().await;
    cluster.members[leader].kill().await;
    // Both are served by another one, and the lock is where it was.
    for locks in [&locks, &others] {
        release(take(locks, "another", LONG).await).await;
    }
    let waits = poll_once(&mut waiter).await;
    assert!(
        guard.is_held(),
        "{:?}",
        poll_once(&mut std::pin::pin!(guard.lost())).await
    );
    assert!(waits.is_pending(), "{waits:?}");
    let fence = guard.fencing_token();
    release(guard).await;
    let next = within(TIME_LIMIT, waiter).await.unwrap();
    assert!(next.fencing_token() > fence);
    release(next).await;
}

#[tokio::test]
async fn nobody_overlaps_while_leaders_are_stopped_and_come_back() {
    let Some(cluster) = EtcdCluster::start("a stale leader", 3).await else {
        return;
    };
    let load = load_past_stops(&cluster).await;
    stale_leaders(&cluster, &load, 2).await;
    load.end().await;
}

/// The same for longer.
#[tokio::test]
#[ignore = "takes a minute and a half: `make torture-etcd`"]
async fn nobody_overlaps_while_leaders_are_stopped_and_killed_for_long() {
    let Some(mut cluster) = EtcdCluster::start("many stale leaders", 3).await else {
        return;
    };
    let load = load_past_stops(&cluster).await;
    stale_leaders(&cluster, &load, 20).await;
    for _ in 0..5 {
        let leader = cluster.leader().await;
        cluster.members[leader].kill().await;
        load.go_on(500).await;
        cluster.members[leader].restart().await;
    }
    load.go_on(10_000_u64.saturating_sub(load.sections())).await;
    println!("{} checked grants", load.sections());
    load.end().await;
}

#[tokio::test]
async fn nobody_overlaps_while_a_leader_is_cut_off_from_the_others_and_not_from_us() {
    let Some(cluster) = EtcdCluster::start_apart("a leader that is cut off", 3).await else {
        return;
    };
    cluster.lead(0).await;
    let load = Load::start(&cluster.url()).await;
    let locks = patient(&cluster.url()).await;
    let guard = take(&locks, "held", PAST_ELECTIONS).await;
    cluster.cut_off();
    // The others elect another leader, and serve those who asked the one that is cut off.
    load.go_on(50).await;
    is_renewed(&guard).await;
    release(guard).await;
    cluster.join();
    load.go_on(20).await;
    load.end().await;
}

#[tokio::test]
async fn a_minority_that_is_silent_disturbs_nobody_and_a_majority_ends_what_is_held() {
    let Some(cluster) = EtcdCluster::start("silent members", 3).await else {
        return;
    };
    let locks = connect(&*cluster.url()).await;
    let guard = take(&locks, "key", TTL).await;
    let leader = cluster.leader().await;
    let others: Vec<_> = (0..3).filter(|at| *at != leader).collect();
    cluster.members[others[0]].stop();
    sleep(TTL * 2).await;
    assert!(guard.is_held());
    take_turn(&locks, "another").await;

    cluster.members[others[1]].stop();
    let stopped = within(TIME_LIMIT, guard.hold(std::future::pending::<()>())).await;
    assert!(matches!(stopped, Err(LockError::Lost { .. })));
    let refused = within(TIME_LIMIT, locks.lock("another").acquire()).await;
    assert!(matches!(refused, Err(LockError::Unavailable { .. })));
    for at in others {
        cluster.members[at].resume();
    }
    // An election may take longer than an acquisition waits for one.
    let again = async || locks.lock("another").acquire().await.is_ok();
    eventually(TIME_LIMIT, again).await;
}

#[tokio::test]
async fn a_lease_that_one_member_alone_confirms_is_lost() {
    let Some(cluster) = EtcdCluster::start("one member that answers", 3).await else {
        return;
    };
    let proxy = |member: &EtcdServer| Proxy::start(member.addr());
    let proxies: Vec<_> = cluster.members.iter().map(proxy).collect();
    let hosts: Vec<_> = proxies.iter().map(|it| it.addr().to_string()).collect();
    let locks = patient(&format!("etcd://{}", hosts.join(","))).await;
    let guard = take(&locks, "key", TTL).await;
    // For all we know, the others have replaced it.
    for proxy in &proxies[1..] {
        proxy.requests().hold();
    }
    within(TIME_LIMIT, guard.lost()).await;
}

#[tokio::test]
async fn an_answer_that_is_lost_makes_one_entry() {
    let Some(server) = EtcdServer::start("a lost answer").await else {
        return;
    };
    let proxy = Proxy::start(server.addr());
    let locks = connect(format!("etcd://{}", proxy.addr())).await;
    take_turn(&locks, "warm").await;
    for round in 0..5 {
        let key = format!("key:{round}");
        proxy.replies().hold();
        let acquire = locks.lock(&*key).ttl(LONG).wait(TIME_LIMIT).acquire();
        let acquire = tokio::spawn(acquire);
        proxy.replies().held().await;
        proxy.cut().await;
        proxy.replies().pass();
        let guard = within(TIME_LIMIT, acquire).await.unwrap().unwrap();
        let entries = server.keys(&format!("lock/{key}/")).await;
        assert_eq!(entries.len(), 1, "{entries:?}");
        release(guard).await;
    }
}

#[tokio::test]
async fn locks_are_taken_again_after_a_backup_was_put_back() {
    let Some(mut server) = EtcdServer::start("a backup").await else {
        return;
    };
    let proxy = Proxy::start(server.addr());
    let locks = patient(&format!("etcd://{}", proxy.addr())).await;
    take_turn(&locks, "warm").await;
    let backup = server.backup().await;
    take_turn(&locks, "warm").await;
    // The marker of the lease is written again after a lost answer.
    proxy.replies().hold();
    let acquire = locks.lock("key").ttl(LONG).wait(TIME_LIMIT).acquire();
    let acquire = tokio::spawn(acquire);
    proxy.replies().held().await;
    proxy.cut().await;
    proxy.replies().pass();
    let held = within(TIME_LIMIT, acquire).await.unwrap().unwrap();
    server.back(&backup).await;
    within(TIME_LIMIT, held.lost()).await;
    take_turn(&locks, "key").await;
    // Only its leases are known there: one that came later has ended.
    let later = locks.lock("another").ttl(TTL).acquire();
    let later = within(TIME_LIMIT, later).await.unwrap();
    server.back(&backup).await;
    within(TIME_LIMIT, later.lost()).await;
    release(take(&locks, "another", TTL).await).await;
}

#[tokio::test]
async fn what_was_released_after_a_backup_is_not_held_by_it_for_long() {
    // The lease outlasts the restart for the backup, also on a busy machine.
    const TTL: Duration = Duration::from_secs(10);
    let Some(mut server) = EtcdServer::start("a backup with locks").await else {
        return;
    };
    let (locks, others) = (patient(&server.url()).await, patient(&server.url()).await);
    let kept = take(&locks, "kept", TTL).await;
    let released = take(&locks, "released", TTL).await;
    let backup = server.backup().await;
    release(released).await;
    for number in 0..20 {
        server.put("else", &number.to_string()).await;
    }
    // The first renewal may have been on its way before.
    for _ in 0..2 {
        is_renewed(&kept).await;
    }
    server.back(&backup).await;
    // Its entry is there again, on a lease that is renewed for what is still held.
    release(take(&others, "released", LONG).await).await;
    within(TIME_LIMIT, kept.lost()).await;
}

#[tokio::test]
async fn a_member_that_answers_slowly_is_given_more_time() {
    let Some(server) = EtcdServer::start("a slow member").await else {
        return;
    };
    let proxy = Proxy::start(server.addr());
    // A first attempt has a fifth of the time, in which it does not answer two questions.
    proxy.replies().delay(Duration::from_millis(400));
    let config = LockConfig::new(format!("etcd://{}", proxy.addr())).unwrap();
    let locks = connect(config.connect_timeout(Duration::from_secs(3))).await;
    proxy.replies().pass();
    take_turn(&locks, "key").await;
}

#[tokio::test]
async fn a_request_that_arrives_after_its_connection_was_given_up_makes_no_entry() {
    let Some(server) = EtcdServer::start("a late request").await else {
        return;
    };
    let (slow, quick) = (Proxy::start(server.addr()), Proxy::start(server.addr()));
    let locks = connect(format!("etcd://{},{}", slow.addr(), quick.addr())).await;
    take_turn(&locks, "warm").await;
    // Whichever of them is asked.
    for slow in [&slow, &quick] {
        slow.requests().hold();
        let guard = take(&locks, "key", LONG).await;
        release(guard).await;
        slow.requests().pass();
        sleep(Duration::from_millis(200)).await;
        assert_eq!(server.keys("lock/key/").await, [""; 0]);
        take_turn(&locks, "key").await;
    }
}
