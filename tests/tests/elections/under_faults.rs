//! Leaders that are cut off, stopped or killed are followed by the next, and do not lead beside it.
//!
//! Section: guarantees.md#elections

use std::net::SocketAddr;
use std::time::Duration;

use lock_runtime::LockConfig;
use tests::{
    EtcdServer, Home, PostgresHome, Proxy, RedisServer, TIME_LIMIT, Worker, ZooKeeperServer,
    connect, poll_once, waits, within,
};

use super::{ELECTION, campaign, leads, next, observe};

/// A lease that ends within a test, and not while a busy machine stands still; in milliseconds.
const TTL: u64 = 8_000;

#[tokio::test]
async fn on_redis_a_leader_that_stops_is_followed() {
    let server = RedisServer::start().await;
    a_leader_that_stops_is_followed(&server.url()).await;
}

#[tokio::test]
async fn on_postgres_a_leader_that_stops_is_followed() {
    if let Some(home) = PostgresHome::start().await {
        a_leader_that_stops_is_followed(&home.url()).await;
    }
}

#[tokio::test]
async fn on_etcd_a_leader_that_stops_is_followed() {
    if let Some(server) = EtcdServer::start("elections").await {
        a_leader_that_stops_is_followed(&server.url()).await;
    }
}

#[tokio::test]
async fn on_zookeeper_a_leader_that_stops_is_followed() {
    if let Some(server) = ZooKeeperServer::start("elections").await {
        a_leader_that_stops_is_followed(&zookeeper(&server)).await;
    }
}

/// A session lasts as long as a lease.
fn zookeeper(server: &ZooKeeperServer) -> String {
    format!("{}?ttl={TTL}ms", server.url("elections"))
}

/// One leader is stopped, the next one is killed.
async fn a_leader_that_stops_is_followed(url: &str) {
    let locks = connect(url).await;
    let mut leaders = observe(&locks);
    let mut stopped = candidate(url, "stopped").await;
    let first = stopped.fence().await;
    let seen = next(&mut leaders).await;
    assert_eq!(&*seen.data, "stopped 1");
    let mut killed = candidate(url, "killed").await;
    waits(&locks, ELECTION, 1).await;
    stopped.pause();
    let second = killed.fence().await;
    assert!(second > first, "{second}, after {first}");
    let after = next(&mut leaders).await;
    assert_eq!(&*after.data, "killed 1");
    assert!(after.fencing_token > seen.fencing_token);
    stopped.resume();
    assert_eq!(stopped.line().await, "stopped lost");
    waits(&locks, ELECTION, 1).await;
    killed.kill().await;
    let third = stopped.fence().await;
    assert!(third > second, "{third}, after {second}");
    let last = next(&mut leaders).await;
    assert_eq!(&*last.data, "stopped 2");
    assert!(last.fencing_token > after.fencing_token);
}

async fn candidate(url: &str, name: &str) -> Worker {
    Worker::candidate(env!("CARGO_BIN_EXE_worker"), url, [ELECTION, name], TTL).await
}

#[tokio::test]
async fn on_redis_a_leader_does_not_lead_on_when_it_is_connected_again() {
    let server = RedisServer::start().await;
    a_leader_does_not_lead_on_when_it_is_connected_again(&server.url(), server.addr()).await;
}

#[tokio::test]
async fn on_etcd_a_leader_does_not_lead_on_when_it_is_connected_again() {
    if let Some(server) = EtcdServer::start("elections").await {
        a_leader_does_not_lead_on_when_it_is_connected_again(&server.url(), server.addr()).await;
    }
}

#[tokio::test]
async fn on_zookeeper_a_leader_does_not_lead_on_when_it_is_connected_again() {
    if let Some(server) = ZooKeeperServer::start("elections").await {
        let url = zookeeper(&server);
        a_leader_does_not_lead_on_when_it_is_connected_again(&url, server.addr()).await;
    }
}

async fn a_leader_does_not_lead_on_when_it_is_connected_again(url: &str, addr: SocketAddr) {
    let mut proxy = Proxy::start(addr);
    let proxied = url.replace(&addr.to_string(), &proxy.addr().to_string());
    let config = LockConfig::new(proxied).expect("a URL");
    let cut_off = connect(config.unavailable_wait(TIME_LIMIT)).await;
    let others = connect(url).await;
    let ttl = Duration::from_millis(TTL);
    let candidate = cut_off.election(ELECTION).candidate("first").ttl(ttl);
    let first = within(TIME_LIMIT, candidate.campaign()).await.unwrap();
    let mut leaders = observe(&cut_off);
    assert_eq!(&*next(&mut leaders).await.data, "first");
    let follows = campaign(&others, "second");
    waits(&others, ELECTION, 1).await;
    proxy.refuse().await;
    proxy.cut().await;
    let second = leads(follows).await;
    assert!(!first.guard().is_held(), "two lead");
    within(TIME_LIMIT, first.lost()).await;
    proxy.admit();
    let leader = next(&mut leaders).await;
    assert_eq!(&*leader.data, "second");
    assert!(leader.fencing_token <= second.fencing_token());
    assert!(!first.guard().is_held() && second.guard().is_held());
    let candidate = cut_off.election(ELECTION).candidate("first").ttl(ttl);
    let mut again = Box::pin(candidate.campaign());
    assert!(poll_once(&mut again).await.is_pending());
    drop(first);
    waits(&others, ELECTION, 1).await;
    assert!(second.guard().is_held());
    second.resign();
    let again = within(TIME_LIMIT, again).await.unwrap();
    assert!(again.fencing_token() > leader.fencing_token);
    let last = next(&mut leaders).await;
    assert_eq!(&*last.data, "first");
    assert!(last.fencing_token > leader.fencing_token);
    again.resign();
}
