//! Users, their rights and encryption.

use lock_runtime::{LockConfig, LockError, LockManager, Tls};
use tests::{
    Authority, EtcdCluster, EtcdServer, LONG, TIME_LIMIT, connect, queued, release, take, within,
};

/// A user who may read and write what locks need, and nothing else.
async fn with_users(server: &EtcdServer) {
    for (path, body) in [
        ("auth/user/add", r#"{"name":"root","password":"secret"}"#),
        ("auth/user/add", r#"{"name":"shop","password":"pass"}"#),
        ("auth/user/grant", r#"{"user":"root","role":"root"}"#),
        ("auth/role/add", r#"{"name":"locks"}"#),
        // From `lock/` up to `lock0`.
        (
            "auth/role/grant",
            r#"{"name":"locks","perm":{"permType":"READWRITE","key":"bG9jay8=","range_end":"bG9jazA="}}"#,
        ),
        ("auth/user/grant", r#"{"user":"shop","role":"locks"}"#),
        ("auth/enable", "{}"),
    ] {
        let answer = server.ask(path, body).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
    }
}

fn url(server: &EtcdServer, login: &str) -> String {
    format!("etcd://{login}@{}", server.addr())
}

// Section: etcd.md#running-it
#[tokio::test]
async fn a_user_needs_the_rights_to_its_prefix_alone() {
    let Some(server) = EtcdServer::start("users").await else {
        return;
    };
    with_users(&server).await;
    let locks = connect(url(&server, "shop:pass")).await;
    let guard = take(&locks, "key", LONG).await;
    let waiter = queued(&locks, locks.lock("key").ttl(LONG)).await;
    assert_eq!(locks.status("key").await.unwrap().waiting, 1);
    assert!(locks.health().await.connected);
    release(guard).await;
    release(within(TIME_LIMIT, waiter).await.unwrap()).await;

    let config = LockConfig::new(url(&server, "shop:pass")).unwrap();
    let elsewhere = connect(config.prefix("else")).await;
    let refused = within(TIME_LIMIT, elsewhere.lock("key").acquire()).await;
    let text = refused.unwrap_err().to_string();
    assert!(text.contains("permission denied"), "{text}");
}

#[tokio::test]
async fn a_login_that_is_refused_says_so_at_once_and_shows_no_password() {
    let Some(server) = EtcdServer::start("logins").await else {
        return;
    };
    with_users(&server).await;
    for (login, says) in [
        ("shop:wrong", "invalid user ID or password"),
        ("nobody:wrong", "invalid user ID or password"),
    ] {
        let connect = within(TIME_LIMIT, LockManager::connect(url(&server, login)));
        let error = connect.await.unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, LockError::Unavailable { .. }), "{text}");
        assert!(text.contains(says) && !text.contains("wrong"), "{text}");
    }
    // It would wait for ever for what may get better.
    let config = LockConfig::new(server.url()).unwrap();
    let nobody = connect(config.unavailable_wait_forever()).await;
    let asks = nobody.lock("key").wait_forever();
    let refused = within(TIME_LIMIT, asks.acquire()).await;
    let text = refused.unwrap_err().to_string();
    assert!(text.contains("user name is empty"), "{text}");
}

// Section: etcd.md#what-it-promises
#[tokio::test]
async fn a_lock_outlasts_the_introduction_of_users() {
    let Some(server) = EtcdServer::start("users that come later").await else {
        return;
    };
    let locks = connect(url(&server, "shop:pass")).await;
    let guard = take(&locks, "key", LONG).await;
    with_users(&server).await;
    release(take(&locks, "another", LONG).await).await;
    assert!(guard.is_held());
    release(guard).await;
}

// Section: etcd.md#what-it-promises
#[tokio::test]
async fn a_token_that_is_valid_no_more_is_renewed() {
    let Some(server) = EtcdServer::start("tokens").await else {
        return;
    };
    with_users(&server).await;
    let locks = connect(url(&server, "shop:pass")).await;
    let root = r#"{"name":"root","password":"secret"}"#;
    let answer = server.ask("auth/authenticate", root).await.unwrap();
    let token = answer.split(r#""token":""#).nth(1).unwrap();
    let token = token.split('"').next().unwrap().to_owned();
    let guard = take(&locks, "key", LONG).await;
    // A new password, the same as before: all tokens of the user are void.
    let change = r#"{"name":"shop","password":"pass"}"#;
    let header = format!("Authorization: {token}\r\n");
    let answer = server.ask_with(&header, "auth/user/changepw", change).await;
    let answer = answer.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    release(take(&locks, "another", LONG).await).await;
    assert!(guard.is_held());
    release(guard).await;
}

#[tokio::test]
async fn encrypted_connections_work_end_to_end() {
    let authority = Authority::new();
    let Some(cluster) = EtcdCluster::start_encrypted("TLS", &authority).await else {
        return;
    };
    let url = cluster.url().replace("etcd://", "etcds://");
    let client = authority.issue("client");
    let trusting = Tls::new().ca_pem(authority.pem());
    let tls = trusting.clone().client_pem(client.certificate, client.key);
    let config = LockConfig::new(&*url).unwrap().tls(tls);
    let locks = connect(config).await;
    let guard = take(&locks, "key", LONG).await;
    let waiter = queued(&locks, locks.lock("key").ttl(LONG)).await;
    release(guard).await;
    release(within(TIME_LIMIT, waiter).await.unwrap()).await;

    let stranger = Authority::new();
    let config = LockConfig::new(&*url).unwrap();
    let config = config.tls(Tls::new().ca_pem(stranger.pem()));
    let refused = within(TIME_LIMIT, LockManager::connect(config)).await;
    let text = refused.unwrap_err().to_string();
    assert!(text.contains("unknown authority"), "{text}");
}
