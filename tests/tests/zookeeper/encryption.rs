//! Connections that encrypt: both ends show who they are, and neither goes on with a stranger.

use lock_runtime::{LockConfig, LockError, LockManager, Tls};
use tests::{
    Authority, LONG, TIME_LIMIT, ZooKeeperServer, connect, queued, release, take, take_turn, within,
};

fn config(server: &ZooKeeperServer, tls: Tls) -> LockConfig {
    let url = format!("zookeepers://{}/encrypted", server.secure_addr());
    LockConfig::new(url).unwrap().ttl(LONG).tls(tls)
}

/// What is said to a client that is refused because of a certificate.
async fn refused(config: LockConfig) -> String {
    let refused = within(TIME_LIMIT, LockManager::connect(config)).await;
    let error = refused.expect_err("no trust");
    let about_tls = matches!(error, LockError::InvalidOptions { setting: "tls", .. });
    assert!(about_tls, "{error}");
    error.to_string()
}

#[tokio::test]
async fn encrypted_connections_work_end_to_end_between_those_who_trust_each_other() {
    let authority = Authority::new();
    let server = ZooKeeperServer::start_encrypted("tests/zookeeper", &authority).await;
    let Some(server) = server else { return };
    let client = authority.issue("client");
    let trusting = Tls::new().ca_pem(authority.pem());
    let known = trusting.clone().client_pem(client.certificate, client.key);
    let locks = connect(config(&server, known)).await;
    let guard = take(&locks, "key", LONG).await;
    let waiter = queued(&locks, locks.lock("key").wait_forever()).await;
    release(guard).await;
    release(within(TIME_LIMIT, waiter).await.unwrap()).await;
    // What the server says of itself comes over such a connection too.
    let findings = within(TIME_LIMIT, locks.diagnose()).await.unwrap();
    assert!(
        findings.iter().any(|it| it.check == "ticks"),
        "{findings:?}"
    );

    let other = Authority::new();
    let text = refused(config(&server, Tls::new().ca_pem(other.pem()))).await;
    assert!(text.contains("unknown authority"), "{text}");
    let stranger = other.issue("client");
    let stranger = trusting
        .clone()
        .client_pem(stranger.certificate, stranger.key);
    for tls in [trusting, stranger] {
        let text = refused(config(&server, tls)).await;
        assert!(text.contains("client's certificate"), "{text}");
    }
    take_turn(&locks, "key").await;
}
