//! Redlock: a majority of independent servers holds a lock, whatever happens to the others.

use std::time::{Duration, Instant};

use lock_runtime::{LockConfig, LockError, LockManager};
use tests::{PATIENCE, Proxy, RedisServer, RedlockFleet, connect, take, unique, within};
use tokio::task::JoinSet;

const TTL: Duration = Duration::from_secs(3);

async fn manager(url: &str) -> LockManager {
    connect(LockConfig::new(url).expect("a URL").ttl(TTL)).await
}

/// Many take turns for the lock while `trouble` happens: never two at once, with growing fences, and all are served.
async fn share(url: &str, key: &str, trouble: impl Future<Output = ()>) {
    const TURNS: usize = 25;
    let entered = std::sync::Arc::new(std::sync::Mutex::new((false, 0)));
    let mut workers = JoinSet::new();
    for _ in 0..4 {
        let (locks, key, entered) = (manager(url).await, key.to_owned(), entered.clone());
        workers.spawn(async move {
            for _ in 0..TURNS {
                let guard = loop {
                    match locks.lock(&key).wait_forever().acquire().await {
                        Ok(guard) => break guard,
                        Err(error) => assert!(error.is_retryable(), "{error}"),
                    }
                };
                let fence = guard.fencing_token().get();
                {
                    let mut entered = entered.lock().expect("nobody panics with it");
                    assert!(!entered.0, "somebody else is in");
                    assert!(fence > entered.1, "fence {fence} after {}", entered.1);
                    *entered = (true, fence);
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
                if guard.is_held() {
                    entered.lock().expect("nobody panics with it").0 = false;
                } else {
                    panic!("lost");
                }
                guard.release();
            }
        });
    }
    let all = async {
        while let Some(ended) = workers.join_next().await {
            ended.expect("no turn overlaps another");
        }
    };
    within(3 * PATIENCE, async { tokio::join!(all, trouble) }).await;
}

#[tokio::test]
async fn two_of_five_may_be_killed() {
    let mut fleet = RedlockFleet::start().await;
    let url = fleet.url();
    let trouble = async {
        for server in [1, 3] {
            tokio::time::sleep(Duration::from_millis(100)).await;
            fleet.servers[server].kill().await;
        }
    };
    share(&url, "key", trouble).await;
}

#[tokio::test]
async fn two_of_five_may_hang() {
    let fleet = RedlockFleet::start().await;
    let trouble = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        fleet.servers[0].stop();
        fleet.servers[4].stop();
        tokio::time::sleep(Duration::from_secs(2)).await;
        fleet.servers[0].resume();
        fleet.servers[4].resume();
    };
    share(&fleet.url(), "key", trouble).await;
}

#[tokio::test]
async fn a_lease_outlives_servers_that_start_again_empty_one_after_the_other() {
    let mut fleet = RedlockFleet::start().await;
    let url = fleet.url().replace("quarantine=0s", "quarantine=3s");
    let locks = LockConfig::new(&url).expect("a URL").ttl(TTL);
    let locks = connect(locks.unavailable_wait(PATIENCE)).await;
    let guard = within(PATIENCE, locks.lock("key").wait_forever().acquire()).await;
    let guard = guard.expect("once the servers have been up for long enough");
    for server in 0..3 {
        fleet.servers[server].restart().await;
        // By then it grants again, and the holder has renewed.
        tokio::time::sleep(TTL + Duration::from_millis(2500)).await;
        assert!(guard.is_held(), "lost with server {server}");
    }
}

#[tokio::test]
async fn a_server_that_has_forgotten_a_lock_grants_none_until_its_lease_has_ended() {
    let mut fleet = RedlockFleet::start().await;
    let url = fleet.url().replace("quarantine=0s", "quarantine=3s");
    let config = || LockConfig::new(&url).expect("a URL").ttl(TTL);
    let locks = connect(config().unavailable_wait(PATIENCE)).await;
    let first = within(PATIENCE, locks.lock("key").renew(false).acquire()).await;
    let first = first.expect("once the servers have been up for long enough");
    for server in &mut fleet.servers[..3] {
        server.restart().await;
    }
    let others = connect(config().unavailable_wait(PATIENCE)).await;
    let second = within(PATIENCE, others.lock("key").wait_forever().acquire()).await;
    assert!(second.expect("later").is_held() && !first.is_held());
}

#[tokio::test]
async fn with_three_of_five_down_nobody_gets_in_and_everybody_comes_back() {
    let fleet = RedlockFleet::start().await;
    let locks = manager(&fleet.url()).await;
    for server in &fleet.servers[2..] {
        server.stop();
    }
    let error = within(PATIENCE, locks.lock("key").acquire()).await;
    let error = error.expect_err("no majority");
    assert!(matches!(error, LockError::Unavailable { .. }), "{error}");
    for server in &fleet.servers[2..] {
        server.resume();
    }
    take(&locks, "key", TTL).await.release();
}

#[tokio::test]
async fn one_server_that_is_late_costs_nothing() {
    const LATE: Duration = Duration::from_millis(300);
    let fleet = RedlockFleet::start().await;
    let proxy = Proxy::start(fleet.servers[0].addr());
    let mut addresses: Vec<_> = fleet.servers.iter().map(RedisServer::addr).collect();
    addresses[0] = proxy.addr();
    let locks = manager(&RedlockFleet::url_of(addresses)).await;
    take(&locks, "key", TTL).await.release();
    proxy.replies().delay(LATE);
    let mut fastest = Duration::MAX;
    for _ in 0..10 {
        let started = Instant::now();
        let guard = take(&locks, &unique("key"), TTL).await;
        assert!(guard.release_confirmed().await.unwrap());
        fastest = fastest.min(started.elapsed());
    }
    assert!(fastest < LATE, "{fastest:?}");
}

#[tokio::test]
async fn a_status_tells_on_how_many_servers_a_lock_is_held() {
    let mut fleet = RedlockFleet::start().await;
    let locks = manager(&fleet.url()).await;
    fleet.servers[2].kill().await;
    let guard = take(&locks, "key", TTL).await;
    let status = within(PATIENCE, locks.status("key")).await.unwrap();
    let [holder] = &status.holders[..] else {
        panic!("{status:?}");
    };
    assert!(matches!(holder.servers, Some(3 | 4)), "{status:?}");
    assert_eq!(holder.fence, Some(guard.fencing_token()));
}

#[tokio::test]
async fn permits_are_refused() {
    let locks = manager(&RedlockFleet::start().await.url()).await;
    let error = locks
        .lock("key")
        .permits(2)
        .acquire()
        .await
        .expect_err("refused");
    assert!(
        error.to_string().starts_with("invalid permits: "),
        "{error}"
    );
}

#[test]
fn even_numbers_and_one_are_refused_with_a_sentence() {
    for hosts in ["a", "a,b", "a,b,c,d", "a,b,c,d,e,f"] {
        let error = LockConfig::new(format!("redis+redlock://{hosts}")).expect_err("refused");
        let text = error.to_string();
        assert!(
            text.contains("a majority of 3, 5 or 7 independent servers"),
            "{text}"
        );
    }
}
