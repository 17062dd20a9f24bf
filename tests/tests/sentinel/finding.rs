//! Finding the master: sentinels that are down, that know no such service, and that have
//! not heard of the last failover.
//!
//! Section: guarantees.md#when-a-replica-takes-over

use std::time::Duration;

use lock_runtime::{LockConfig, LockError, LockManager};
use tests::{
    Authority, LONG, RedisServer, SentinelFleet, TIME_LIMIT, connect, release, take, timed, within,
};

use crate::{config, master};

/// A sentinel that watches a server under the name of a fleet's, and knows nobody else.
async fn alone(service: &str, port: u16) -> RedisServer {
    let config = format!("sentinel monitor {service} 127.0.0.1 {port} 1\n");
    RedisServer::builder().sentinel(config).start().await
}

/// The fleet's URL with one more sentinel, the first one to be named.
fn and(sentinel: &RedisServer, fleet: &SentinelFleet) -> String {
    let hosts = format!("//{},", sentinel.addr());
    fleet.url().replacen("//", &hosts, 1)
}

#[tokio::test]
async fn a_sentinel_that_missed_the_failover_is_not_believed() {
    let fleet = SentinelFleet::start().await;
    // For ever a master, as an old one that is cut off.
    let old = RedisServer::start().await;
    let stale = alone("locks", old.port()).await;
    fleet.failover().await;
    for _ in 0..10 {
        // The other sentinels hear of it one after another.
        let config = config(and(&stale, &fleet)).connect_timeout(TIME_LIMIT / 2);
        let locks = connect(config).await;
        let guard = take(&locks, "key", LONG).await;
        assert_eq!(old.keys("*").await, [""; 0]);
        assert_eq!(master(&fleet).await.keys("lock:{*").await.len(), 1);
        release(guard).await;
    }
}

#[tokio::test]
async fn one_sentinel_is_enough() {
    let mut fleet = SentinelFleet::start().await;
    let locks = connect(config(fleet.url())).await;
    fleet.sentinel_mut(0).kill().await;
    // This one accepts connections, and says nothing.
    fleet.sentinels()[1].stop();
    let other = connect(config(fleet.url())).await;
    let guard = take(&other, "key", LONG).await;
    release(guard).await;
    // Those who are connected need none.
    fleet.sentinel_mut(2).kill().await;
    let guard = take(&locks, "key", LONG).await;
    release(guard).await;
}

#[tokio::test]
async fn without_a_sentinel_each_is_named_with_what_it_said() {
    let mut fleet = SentinelFleet::start().await;
    for number in 0..2 {
        fleet.sentinel_mut(number).kill().await;
    }
    fleet.sentinels()[2].stop();
    let config = LockConfig::new(fleet.url()).expect("a URL");
    let connecting = LockManager::connect(config.connect_timeout(Duration::from_secs(2)));
    let error = within(TIME_LIMIT, connecting)
        .await
        .expect_err("all are down");
    let text = error.to_string();
    assert!(matches!(error, LockError::Unavailable { .. }), "{text}");
    for sentinel in fleet.sentinels() {
        assert!(text.contains(&sentinel.addr().to_string()), "{text}");
    }
    assert!(
        text.contains("refused") && text.contains("did not answer in time"),
        "{text}"
    );
    fleet.sentinels()[2].resume();
}

#[tokio::test]
async fn a_service_that_no_sentinel_knows_is_a_wrong_url() {
    let fleet = SentinelFleet::start().await;
    let url = fleet.url().replace("/locks", "/sheds");
    let (took, outcome) = timed(LockManager::connect(url)).await;
    let error = outcome.expect_err("no such service");
    let text = error.to_string();
    assert!(text.starts_with("invalid url: "), "{text}");
    assert!(
        text.contains("`sheds`") && text.contains("knows no such service"),
        "{text}"
    );
    assert!(took < TIME_LIMIT / 4, "{took:?}");
}

#[tokio::test]
async fn sentinels_that_are_not_sure_are_asked_again() {
    let fleet = SentinelFleet::start().await;
    let stranger = alone("sheds", fleet.nodes()[0].port()).await;
    let locks = connect(config(and(&stranger, &fleet))).await;
    let guard = take(&locks, "key", LONG).await;
    release(guard).await;
}

#[tokio::test]
async fn sentinels_and_master_may_encrypt() {
    let authority = Authority::new();
    let directory = tempfile::tempdir().expect("a directory");
    let ca = directory.path().join("ca.pem");
    std::fs::write(&ca, authority.pem()).expect("a file");
    let ca = ca.to_str().expect("a name");
    let builder = || {
        let identity = authority.issue_for_loopback();
        RedisServer::builder()
            .tls(identity)
            .arg("--tls-ca-cert-file", ca)
    };
    let server = builder().start().await;
    let monitor = format!(
        "tls-replication yes\nsentinel monitor locks 127.0.0.1 {} 1\n",
        server.tls_addr().port()
    );
    let sentinel = builder().sentinel(monitor).start().await;
    let url = format!("rediss+sentinel://{}/locks?ca={ca}", sentinel.tls_addr());
    let locks = connect(url.as_str()).await;
    let guard = take(&locks, "key", LONG).await;
    assert_eq!(server.keys("lock:{*").await.len(), 1);
    release(guard).await;

    let url = format!("rediss+sentinel://{}/locks", sentinel.tls_addr());
    let error = within(TIME_LIMIT, LockManager::connect(url)).await;
    let text = error.expect_err("of an unknown authority").to_string();
    assert!(text.contains("unknown authority"), "{text}");
}
