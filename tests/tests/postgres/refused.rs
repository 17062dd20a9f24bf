//! Servers that cannot keep locks, and logins that are not safe, are refused with a sentence.

use lock_runtime::{LockConfig, LockError, LockManager};
use tests::{
    LONG, PostgresServer, Proxy, TIME_LIMIT, connect, queued, release, take, take_turn, within,
};

use crate::{refused, server};

/// The sentence of an error that no waiting can mend.
async fn invalid(url: &str) -> String {
    match refused(url).await {
        error @ LockError::InvalidOptions { .. } => error.to_string(),
        error => panic!("{error:?}"),
    }
}

#[tokio::test]
async fn a_password_is_not_sent_as_md5() {
    let builder = PostgresServer::builder()
        .option("password_encryption", "md5")
        .access("host all old 127.0.0.1/32 md5");
    let Some(server) = builder.start("tests/postgres").await else {
        return;
    };
    server.cmd("CREATE ROLE old LOGIN PASSWORD 'secret'").await;
    let url = format!("postgres://old:secret@{}/postgres", server.addr());
    let text = refused(&url).await.to_string();
    assert!(text.contains("MD5") || text.contains("md5"), "{text}");
    assert!(
        text.contains("scram-sha-256") || text.contains("SCRAM-SHA-256"),
        "{text}"
    );
    assert!(!text.contains("secret"), "{text}");
}

#[tokio::test]
async fn a_password_is_checked_by_scram() {
    let builder = PostgresServer::builder().access("host all new 127.0.0.1/32 scram-sha-256");
    let Some(server) = builder.start("tests/postgres").await else {
        return;
    };
    server.cmd("CREATE ROLE new LOGIN PASSWORD 's3cret'").await;
    server.cmd("GRANT CREATE ON DATABASE postgres TO new").await;
    let url = |password| format!("postgres://new:{password}@{}/postgres", server.addr());
    let locks = connect(&*url("s3cret")).await;
    take_turn(&locks, "key").await;
    let text = refused(&url("wrong")).await.to_string();
    assert!(text.contains("password"), "{text}");
    assert!(!text.contains("wrong"), "{text}");
}

#[tokio::test]
async fn a_database_in_another_encoding_is_refused() {
    let Some(server) = server().await else { return };
    server
        .cmd("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0")
        .await;
    let url = format!("postgres://postgres@{}/latin", server.addr());
    let text = invalid(&url).await;
    assert!(text.contains("UTF8") && text.contains("LATIN1"), "{text}");
}

#[tokio::test]
async fn a_server_that_is_too_old_is_refused() {
    let Some(server) = server().await else { return };
    let version = server.cmd("SHOW server_version_num").await.remove(0);
    let old = format!("13{}", &version[2..]);
    let proxy = Proxy::start(server.addr());
    proxy.replies().inspect(move |bytes| {
        let places: Vec<_> = bytes
            .windows(version.len())
            .enumerate()
            .filter(|(_, it)| *it == version.as_bytes())
            .map(|(at, _)| at)
            .collect();
        for at in places {
            bytes[at..at + old.len()].copy_from_slice(old.as_bytes());
        }
        tests::Verdict::Pass
    });
    let text = invalid(&server.url_at(proxy.addr())).await;
    assert!(text.contains("14"), "{text}");
}

#[tokio::test]
async fn a_standby_alone_is_unavailable() {
    let Some(server) = server().await else { return };
    let standby = server.standby().await;
    match refused(&standby.url()).await {
        error @ LockError::Unavailable { .. } => {
            let text = error.to_string();
            assert!(
                text.contains("recovery") || text.contains("standby"),
                "{text}"
            );
        }
        error => panic!("{error:?}"),
    }
    // Beside its primary it is passed over.
    let url = format!(
        "postgres://postgres@{},{}/postgres",
        standby.addr(),
        server.addr()
    );
    take_turn(&connect(&*url).await, "key").await;
}

#[tokio::test]
async fn a_host_that_refuses_the_user_is_passed_over() {
    let builder = PostgresServer::builder().access("host all shop 127.0.0.1/32 reject");
    let (refusing, serving) = tokio::join!(builder.start("tests/postgres"), server());
    let (Some(refusing), Some(serving)) = (refusing, serving) else {
        return;
    };
    serving.cmd("CREATE ROLE shop LOGIN SUPERUSER").await;
    let url = |hosts: String| format!("postgres://shop@{hosts}/postgres");
    let hosts = format!("{},{}", refusing.addr(), serving.addr());
    let config = LockConfig::new(url(hosts)).unwrap();
    let locks = connect(config.unavailable_wait_forever()).await;
    take_turn(&locks, "key").await;
    let guard = take(&locks, "key", LONG).await;
    let waiter = queued(&locks, locks.lock("key").wait_forever()).await;
    // The next host is asked first, which is the other one.
    serving
        .cmd("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'shop'")
        .await;
    release(guard).await;
    release(within(TIME_LIMIT, waiter).await.unwrap()).await;
    let both = format!("{0},{0}", refusing.addr());
    assert!(refused(&url(both)).await.to_string().contains("pg_hba"));
}

#[tokio::test]
async fn a_database_that_is_not_there_is_named() {
    let Some(server) = server().await else { return };
    let url = format!("postgres://postgres@{}/nowhere", server.addr());
    let text = refused(&url).await.to_string();
    assert!(text.contains("nowhere"), "{text}");
}

#[tokio::test]
async fn a_schema_that_may_not_be_installed_is_explained() {
    let Some(server) = server().await else { return };
    server.cmd("CREATE ROLE shop LOGIN").await;
    let url = format!("postgres://shop@{}/postgres", server.addr());
    let text = refused(&url).await.to_string();
    assert!(text.contains("lockctl sql"), "{text}");
    // Someone else has installed it: these rights are enough.
    let owner = connect(&*server.url()).await;
    take_turn(&owner, "key").await;
    let text = invalid(&url).await;
    let (_, grant) = text.split_once("must run `").unwrap();
    let (grant, _) = grant.split_once('`').unwrap();
    server.cmd(grant).await;
    take_turn(&connect(&*url).await, "key").await;
}

#[tokio::test]
async fn nothing_is_installed_if_the_url_forbids_it() {
    let Some(server) = server().await else { return };
    let url = format!("{}?install=never", server.url());
    let text = refused(&url).await.to_string();
    assert!(text.contains("lockctl sql"), "{text}");
    assert_eq!(
        server.cmd("SELECT to_regnamespace('lock_runtime')").await,
        [""; 0]
    );
    let config = LockConfig::new(server.url()).unwrap();
    within(TIME_LIMIT, LockManager::connect(config))
        .await
        .unwrap();
    take_turn(&connect(&*url).await, "key").await;
}

#[test]
fn encryption_that_may_be_left_out_is_refused() {
    for mode in ["prefer", "allow"] {
        let url = format!("postgres://me@localhost/shop?sslmode={mode}");
        let error = LockConfig::new(url).unwrap_err().to_string();
        assert!(error.contains("verify-full"), "{error}");
    }
}
