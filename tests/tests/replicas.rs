//! `replicas`: a grant and a renewal count once so many replicas have them.
//!
//! Section: guarantees.md#when-a-replica-takes-over

use std::{
    net::SocketAddr,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use lock_runtime::{LockConfig, LockError, LockManager};
use tests::{
    LONG, Proxy, RedisServer, SentinelFleet, TIME_LIMIT, Verdict, connect, granted, queue, release,
    take, take_turn, timed, unique, within,
};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
};

const SECOND: Duration = Duration::from_secs(1);

fn config(url: impl AsRef<str>, replicas: usize) -> LockConfig {
    LockConfig::new(url).expect("a URL").replicas(replicas)
}

/// Those that are not the master.
async fn replicas(fleet: &SentinelFleet) -> Vec<&RedisServer> {
    let master = fleet.master().await;
    let all = fleet.nodes().iter().enumerate();
    all.filter(|(number, _)| *number != master)
        .map(|(_, node)| node)
        .collect()
}

#[tokio::test]
async fn a_grant_is_on_every_replica() {
    let fleet = SentinelFleet::start().await;
    let locks = connect(config(fleet.url(), 2)).await;
    for _ in 0..50 {
        let key = unique("key");
        let guard = take(&locks, &key, LONG).await;
        for replica in replicas(&fleet).await {
            assert_eq!(replica.keys(&format!("*{{{key}}}")).await.len(), 1);
        }
        release(guard).await;
    }
}

#[tokio::test]
async fn a_grant_survives_a_failover_right_after_it() {
    let fleet = SentinelFleet::builder()
        .down_after(2 * SECOND)
        .start()
        .await;
    let locks = connect(config(fleet.url(), 2).unavailable_wait_forever()).await;
    let other = connect(config(fleet.url(), 2).unavailable_wait_forever()).await;
    for _ in 0..3 {
        let guard = take(&locks, "key", LONG).await;
        let first = &fleet.nodes()[fleet.master().await];
        let mut switches = fleet.switches().await;
        first.stop();
        switches.next().await;
        let tried = other.lock("key").wait(Duration::ZERO).acquire();
        let held = within(TIME_LIMIT, tried).await;
        assert!(held.is_err() && guard.is_held());
        release(guard).await;
        first.resume();
        fleet.settled().await;
    }
}

#[tokio::test]
async fn with_two_replicas_of_which_one_confirms_locks_go_on_after_a_failure() {
    let fleet = SentinelFleet::builder().down_after(SECOND).start().await;
    let one = connect(config(fleet.url(), 1).unavailable_wait_forever()).await;
    let both = connect(config(fleet.url(), 2)).await;
    let first = &fleet.nodes()[fleet.master().await];
    let mut switches = fleet.switches().await;
    first.stop();
    switches.next().await;
    take_turn(&one, "key").await;
    let refused = within(TIME_LIMIT, both.lock("key").acquire()).await;
    assert!(
        matches!(refused, Err(LockError::Unavailable { .. })),
        "{refused:?}"
    );
    first.resume();
    fleet.settled().await;
}

#[tokio::test]
async fn a_lock_that_is_handed_over_waits_for_the_replicas_too() {
    let fleet = SentinelFleet::start().await;
    let locks = connect(config(fleet.url(), 2).unavailable_wait_forever()).await;
    let other = connect(config(fleet.url(), 2).unavailable_wait_forever()).await;
    let key = unique("handed");
    let guard = take(&locks, &key, LONG).await;
    let master = &fleet.nodes()[fleet.master().await];
    let waiter = queue(master, &other, &key, LONG, 1).await;
    let all = replicas(&fleet).await;
    all[0].stop();
    release(guard).await;
    master.queued(&key, 0).await;
    tokio::time::sleep(SECOND / 2).await;
    assert!(!waiter.is_finished(), "one replica does not have it");
    all[0].resume();
    let guard = granted(TIME_LIMIT, waiter).await;
    release(guard).await;
}

#[tokio::test]
async fn a_renewal_that_too_few_have_is_none() {
    let fleet = SentinelFleet::start().await;
    let locks = connect(config(fleet.url(), 2)).await;
    let ttl = 3 * SECOND;
    let guard = take(&locks, "key", ttl).await;
    let all = replicas(&fleet).await;
    all[0].stop();
    let work = guard.hold(std::future::pending::<()>());
    let (took, lost) = timed(work).await;
    assert!(matches!(lost, Err(LockError::Lost { .. })), "{lost:?}");
    assert!(took < ttl + ttl / 2, "{took:?}");
    all[0].resume();

    // And with all of them it goes on.
    fleet.settled().await;
    let guard = take(&locks, "key", ttl).await;
    let work = guard.hold(tokio::time::sleep(ttl + ttl / 2));
    within(TIME_LIMIT, work).await.expect("it is renewed");
    release(guard).await;
}

#[tokio::test]
async fn too_few_replicas_are_unavailable_with_their_number() {
    let server = RedisServer::start().await;
    let config = config(server.url(), 1).connect_timeout(2 * SECOND);
    let error = within(TIME_LIMIT, LockManager::connect(config)).await;
    let text = match error {
        Err(error @ LockError::Unavailable { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    };
    let says = "0 of its replicas have the latest writes, and `replicas` asks for 1";
    assert!(text.contains(says), "{text}");

    let fleet = SentinelFleet::start().await;
    let locks = connect(self::config(fleet.url(), 2)).await;
    let all = replicas(&fleet).await;
    all[0].stop();
    for wait in [Duration::ZERO, SECOND] {
        let tried = locks.lock("key").ttl(LONG).wait(wait).acquire();
        let error = within(TIME_LIMIT, tried).await.expect_err("one is missing");
        let text = error.to_string();
        assert!(text.contains("1 of its replicas have"), "{text}");
    }
    all[0].resume();
    fleet.settled().await;
    // What was not confirmed is not left behind.
    let guard = take(&locks, "key", LONG).await;
    release(guard).await;
}

/// Connects clients to these servers in turn; the address.
async fn in_turn(servers: [&RedisServer; 2]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let all = servers.map(RedisServer::addr);
    tokio::spawn(async move {
        for server in all.into_iter().cycle() {
            let (mut client, _) = listener.accept().await.expect("a client");
            let mut server = TcpStream::connect(server).await.expect("it serves");
            tokio::spawn(async move { copy_bidirectional(&mut client, &mut server).await });
        }
    });
    address
}

#[tokio::test]
async fn replicas_of_another_server_behind_the_same_address_confirm_nothing() {
    let fleet = SentinelFleet::start().await;
    let master = &fleet.nodes()[fleet.master().await];
    let alone = RedisServer::start().await;
    let address = in_turn([&alone, master]).await;
    let config = config(format!("redis://{address}"), 2).connect_timeout(3 * SECOND);
    let connected = within(TIME_LIMIT, LockManager::connect(config)).await;
    let text = connected.map(drop).expect_err("two servers").to_string();
    assert!(text.contains("leads to several servers"), "{text}");
}

/// Else the replicas of a server that does not have the lock would confirm it.
#[tokio::test]
async fn a_grant_is_not_confirmed_by_the_server_that_comes_next() {
    let [old, new] = [SentinelFleet::start().await, SentinelFleet::start().await];
    let [old, new] = [
        &old.nodes()[old.master().await],
        &new.nodes()[new.master().await],
    ];
    let mut proxy = Proxy::start(old.addr());
    for _ in 0..20 {
        proxy.lead_to(old.addr()).await;
        let locks = connect(config(proxy.url(), 2).pool_size(1)).await;
        // Open connections stay where they are.
        proxy.lead_to(new.addr()).await;
        let is_next = AtomicBool::new(true);
        proxy.replies().inspect(move |_| {
            if is_next.swap(false, Ordering::Relaxed) {
                Verdict::BreakAfter
            } else {
                Verdict::Pass
            }
        });
        let key = unique("key");
        let guard = take(&locks, &key, LONG).await;
        assert_eq!(new.keys(&format!("*{{{key}}}")).await.len(), 1);
        release(guard).await;
        proxy.replies().ignore();
    }
}

/// Else another server behind the same address might confirm.
#[tokio::test]
async fn the_right_to_know_the_server_is_needed() {
    let fleet = SentinelFleet::start().await;
    let master = &fleet.nodes()[fleet.master().await];
    for (right, is_enough) in [("-client|id", true), ("-info", false)] {
        let user = [
            "ACL", "SETUSER", "shop", "on", ">secret", "~*", "&*", "+@all", right,
        ];
        master.cmd(&user).await;
        let config = config(master.url_with_user("shop", "secret"), 2);
        let connected = LockManager::connect(config.connect_timeout(3 * SECOND));
        match within(TIME_LIMIT, connected).await {
            Ok(_) => assert!(is_enough, "{right}"),
            Err(error) => assert!(
                !is_enough && error.to_string().contains("`INFO`"),
                "{error}"
            ),
        }
    }
}

#[tokio::test]
async fn the_right_to_wait_is_needed() {
    let server = RedisServer::start().await;
    let user = [
        "ACL", "SETUSER", "shop", "on", ">secret", "~*", "&*", "+@all", "-wait",
    ];
    server.cmd(&user).await;
    let config = config(server.url_with_user("shop", "secret"), 1).connect_timeout(TIME_LIMIT);
    let (took, outcome) = timed(LockManager::connect(config)).await;
    let text = outcome.expect_err("no right").to_string();
    assert!(text.contains("'wait'"), "{text}");
    assert!(took < TIME_LIMIT / 4, "{took:?}");
}

/// It would say of a lock that it does not know that it is not held.
#[tokio::test]
async fn a_replica_is_refused_in_every_layout() {
    let fleet = SentinelFleet::start().await;
    let url = replicas(&fleet).await[0].url().clone();
    let setnx = url.replace("redis://", "redis+setnx://");
    for url in [format!("{url}?layout=declared"), setnx, url] {
        let config = LockConfig::new(&url).expect("a URL");
        let config = config.connect_timeout(2 * SECOND);
        let connected = within(TIME_LIMIT, LockManager::connect(config)).await;
        let text = connected.map(drop).expect_err(&url).to_string();
        assert!(text.contains("replica"), "{url}: {text}");
    }
}

#[test]
fn what_has_no_replicas_refuses_the_setting() {
    let config = LockConfig::new("memory:?replicas=1").expect("a URL");
    let text = config.validate().expect_err("memory").to_string();
    assert!(text.starts_with("invalid replicas: "), "{text}");
}
