//! Connections that are encrypted, and passwords that are proven, sent or changed.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use lock_runtime::{Credentials, LockConfig, LockError, LockManager, Tls};
use tests::{Authority, PostgresServer, TIME_LIMIT, connect, eventually, take_turn, within};

use crate::refused;

const TEST: &str = "tests/postgres";

/// A server that encrypts; its users `plain` and `proven` have a password.
async fn encrypted(authority: &Authority) -> Option<PostgresServer> {
    let builder = PostgresServer::builder()
        .tls(authority.issue_for_loopback())
        .access("host all plain 127.0.0.1/32 password")
        .access("host all proven 127.0.0.1/32 scram-sha-256");
    let server = builder.start(TEST).await?;
    for user in ["plain", "proven"] {
        server
            .cmd(&format!("CREATE ROLE {user} LOGIN PASSWORD 's3cret'"))
            .await;
        server
            .cmd(&format!("GRANT CREATE ON DATABASE postgres TO {user}"))
            .await;
    }
    Some(server)
}

/// The URL of a user with a schema of its own.
fn url(server: &PostgresServer, user: &str, mode: &str) -> String {
    let addr = server.addr();
    format!("postgres://{user}:s3cret@{addr}/postgres?schema={user}&sslmode={mode}")
}

#[tokio::test]
async fn connections_are_encrypted_and_the_server_is_verified() {
    let authority = Authority::new();
    let Some(server) = encrypted(&authority).await else {
        return;
    };
    for user in ["plain", "proven"] {
        for mode in ["require", "verify-ca", "verify-full"] {
            let config = LockConfig::new(url(&server, user, mode)).unwrap();
            let locks = connect(config.tls(Tls::new().ca_pem(authority.pem()))).await;
            take_turn(&locks, "key").await;
            let question = format!(
                "SELECT bool_and(s.ssl) FROM pg_stat_ssl s JOIN pg_stat_activity USING (pid) WHERE usename = '{user}'"
            );
            assert_eq!(server.cmd(&question).await, ["t"]);
            locks.shutdown().await;
        }
    }
}

#[tokio::test]
async fn a_server_that_nobody_vouches_for_is_refused() {
    let authority = Authority::new();
    let Some(server) = encrypted(&authority).await else {
        return;
    };
    let config = LockConfig::new(url(&server, "proven", "require")).unwrap();
    let config = config.tls(Tls::new().ca_pem(Authority::new().pem()));
    let connected = within(TIME_LIMIT, LockManager::connect(config)).await;
    let error = connected.expect_err("it must not connect");
    assert!(error.to_string().starts_with("invalid tls: "), "{error:?}");
}

#[tokio::test]
async fn a_server_that_does_not_encrypt_gets_no_password() {
    let Some(server) = PostgresServer::start(TEST).await else {
        return;
    };
    let text = refused(&url(&server, "proven", "verify-full")).await;
    assert!(text.to_string().contains("does not encrypt"), "{text:?}");
}

#[tokio::test]
async fn a_password_is_sent_over_encrypted_connections_alone() {
    let authority = Authority::new();
    let Some(server) = encrypted(&authority).await else {
        return;
    };
    let error = refused(&url(&server, "plain", "disable")).await;
    assert!(error.to_string().contains("not encrypted"), "{error:?}");
    take_turn(&connect(&*url(&server, "proven", "disable")).await, "key").await;
}

/// The connection is cut after the password has been changed.
#[tokio::test]
async fn a_password_that_has_changed_is_asked_for_again() {
    let access = "host all shop 127.0.0.1/32 scram-sha-256";
    let builder = PostgresServer::builder().access(access);
    let Some(server) = builder.start(TEST).await else {
        return;
    };
    server.cmd("CREATE ROLE shop LOGIN PASSWORD 'old'").await;
    server
        .cmd("GRANT CREATE ON DATABASE postgres TO shop")
        .await;
    let is_new = Arc::new(AtomicBool::new(false));
    let config = LockConfig::new(format!("postgres://{}/postgres", server.addr())).unwrap();
    let asked = Arc::clone(&is_new);
    let locks = connect(config.credentials(move || {
        let password = if asked.load(Ordering::SeqCst) {
            "new"
        } else {
            "old"
        };
        async move { io::Result::Ok(Credentials::new("shop", password)) }
    }))
    .await;
    take_turn(&locks, "key").await;
    server.cmd("ALTER ROLE shop PASSWORD 'new'").await;
    is_new.store(true, Ordering::SeqCst);
    server.terminate_all().await;
    let is_up = async || locks.health().await.connected;
    eventually(TIME_LIMIT, is_up).await;
    take_turn(&locks, "key").await;
}

#[tokio::test]
async fn a_url_without_a_user_is_refused() {
    let Some(server) = PostgresServer::start(TEST).await else {
        return;
    };
    match refused(&format!("postgres://{}/postgres", server.addr())).await {
        error @ LockError::InvalidOptions { setting: "url", .. } => {
            assert!(error.to_string().contains("names no user"), "{error}");
        }
        error => panic!("{error:?}"),
    }
}

#[tokio::test]
async fn a_server_that_waits_for_too_few_standbys_is_refused() {
    let Some(server) = PostgresServer::start(TEST).await else {
        return;
    };
    let one = format!("{}?replicas=1", server.url());
    match refused(&one).await {
        error @ LockError::InvalidOptions {
            setting: "replicas",
            ..
        } => {
            let text = error.to_string();
            assert!(text.contains("synchronous_standby_names"), "{text}");
        }
        error => panic!("{error:?}"),
    }
    let _standby = server.standby().await;
    server
        .cmd("ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (*)'")
        .await;
    server.cmd("SELECT pg_reload_conf()").await;
    let names = async || server.cmd("SHOW synchronous_standby_names").await == ["ANY 1 (*)"];
    eventually(TIME_LIMIT, names).await;
    take_turn(&connect(&*one).await, "key").await;
    let two = format!("{}?replicas=2", server.url());
    assert!(refused(&two).await.to_string().contains("not for 2"));
}
