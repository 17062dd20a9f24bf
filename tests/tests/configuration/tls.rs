//! Encrypted connections, and servers that are not to be trusted or do not trust us.

use std::time::{Duration, Instant};

use lock_runtime::{LockConfig, LockError, LockManager, Tls};
use tests::{Authority, RedisServer, eventually, take_turn, within};
use tokio::process::Command;

use crate::{TIME_LIMIT, config, connect, unavailable, works_end_to_end};

/// Soon enough to say that nothing was tried twice.
const AT_ONCE: Duration = Duration::from_secs(3);

fn encrypted(server: &RedisServer) -> LockConfig {
    config(format!("rediss://{}", server.tls_addr())).connect_timeout(TIME_LIMIT)
}

/// The text of an error that is about TLS and came at once.
async fn refused(config: LockConfig) -> String {
    let start = Instant::now();
    let error = within(TIME_LIMIT, LockManager::connect(config)).await;
    let error = error.expect_err("no trust");
    let about_tls = matches!(error, LockError::InvalidOptions { setting: "tls", .. });
    assert!(about_tls, "{error}");
    assert!(start.elapsed() < AT_ONCE, "{:?}", start.elapsed());
    error.to_string()
}

#[tokio::test]
async fn a_server_of_a_trusted_authority_is_used() {
    let authority = Authority::new();
    let server = RedisServer::builder().tls(authority.issue_for_loopback());
    let server = server.start().await;
    let tls = Tls::new().ca_pem(authority.pem());
    works_end_to_end(&server, encrypted(&server).tls(tls)).await;
}

#[tokio::test]
async fn a_url_names_the_files() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    std::fs::write(path("ca.pem"), theirs.pem()).unwrap();
    ours.issue("client").write(directory.path(), "client");
    let server = RedisServer::builder().tls_for(theirs.issue("locks.example"), &ours);
    let server = server.start().await;
    let url = format!(
        "valkeys://{}?ca={}&cert={}&key={}&server_name=locks.example",
        server.tls_addr(),
        path("ca.pem"),
        path("client.pem"),
        path("client.key"),
    );
    works_end_to_end(&server, config(url)).await;
}

// Section: guarantees.md#the-body-does-not-begin-without-the-lock
#[tokio::test]
async fn a_certificate_of_an_unknown_authority_is_refused_at_once() {
    let server = RedisServer::builder().tls(Authority::new().issue_for_loopback());
    let server = server.start().await;
    let other = Tls::new().ca_pem(Authority::new().pem());
    for config in [encrypted(&server), encrypted(&server).tls(other)] {
        let text = refused(config).await;
        assert!(text.contains("unknown authority"), "{text}");
    }
}

/// Says in its environment that the test below runs in a process of its own, and where the server is.
const CHILD: &str = "TRUSTS_THE_SYSTEM_AT";

/// Runs itself in processes of its own, since the environment belongs to a whole process.
#[tokio::test]
async fn the_authorities_of_the_system_are_trusted() {
    if let Ok(url) = std::env::var(CHILD) {
        let config = config(url).tls(Tls::new().native_roots());
        let connected = within(TIME_LIMIT, LockManager::connect(config)).await;
        return match connected {
            Ok(locks) => drop(take_turn(&locks, "key").await),
            Err(error) => panic!("{error}"),
        };
    }
    let (theirs, others) = (Authority::new(), Authority::new());
    let server = RedisServer::builder().tls(theirs.issue_for_loopback());
    let server = server.start().await;
    let directory = tempfile::tempdir().unwrap();
    for (authority, says) in [(theirs, "1 passed"), (others, "unknown authority")] {
        let file = directory.path().join("ca.pem");
        std::fs::write(&file, authority.pem()).unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap());
        child
            .args(["--exact", "tls::the_authorities_of_the_system_are_trusted"])
            .env(CHILD, format!("rediss://{}", server.tls_addr()))
            .env("SSL_CERT_FILE", file)
            .env_remove("SSL_CERT_DIR")
            .kill_on_drop(true);
        let output = within(TIME_LIMIT, child.output()).await.unwrap();
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(text.contains(says), "{text}");
    }
}

// Section: guarantees.md#the-body-does-not-begin-without-the-lock
#[tokio::test]
async fn a_certificate_for_another_name_is_refused_at_once() {
    let authority = Authority::new();
    let server = RedisServer::builder().tls(authority.issue("locks.example"));
    let server = server.start().await;
    let tls = Tls::new().ca_pem(authority.pem());
    let text = refused(encrypted(&server).tls(tls.clone())).await;
    assert!(text.contains("locks.example"), "{text}");
    let named = tls.server_name("locks.example");
    works_end_to_end(&server, encrypted(&server).tls(named)).await;
}

#[tokio::test]
async fn a_server_that_asks_for_a_certificate_gets_ours() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    let (client, stranger) = (ours.issue("client"), theirs.issue("client"));
    let server = RedisServer::builder().tls_for(theirs.issue_for_loopback(), &ours);
    let server = server.start().await;
    let tls = Tls::new().ca_pem(theirs.pem());
    let known = tls.clone().client_pem(client.certificate, client.key);
    works_end_to_end(&server, encrypted(&server).tls(known)).await;

    let unknown = tls.clone().client_pem(stranger.certificate, stranger.key);
    for tls in [tls, unknown] {
        let text = refused(encrypted(&server).tls(tls)).await;
        assert!(text.contains("client's certificate"), "{text}");
    }
}

#[tokio::test]
async fn a_port_that_is_not_encrypted_says_so() {
    let server = RedisServer::start().await;
    let config = config(format!("rediss://{}", server.addr()));
    let config = config.connect_timeout(Duration::from_secs(1));
    let (text, _) = unavailable(LockManager::connect(config)).await;
    assert!(text.contains("does not encrypt"), "{text}");
    assert!(
        text.contains("write `redis` for `rediss` in the URL"),
        "{text}"
    );
}

#[tokio::test]
async fn a_port_that_is_encrypted_says_so() {
    let server = RedisServer::builder().tls(Authority::new().issue_for_loopback());
    let server = server.start().await;
    let config = config(format!("redis://{}", server.tls_addr()));
    let config = config.connect_timeout(Duration::from_secs(1));
    let (text, _) = unavailable(LockManager::connect(config)).await;
    assert!(
        text.contains("write `rediss` for `redis` in the URL"),
        "{text}"
    );
}

#[tokio::test]
async fn files_and_settings_that_cannot_serve_say_so() {
    let url = "rediss://127.0.0.1:1";
    let identity = Authority::new().issue("client");
    let half = |name: &str| format!("{url}?{name}=/nowhere/{name}.pem");
    for (config, says) in [
        (config(half("ca")), "/nowhere/ca.pem"),
        (config(half("cert")), "both `cert` and `key`"),
        (config(half("key")), "both `cert` and `key`"),
        (
            config(url).tls(Tls::new().ca_pem("none")),
            "not a certificate",
        ),
        (
            config(url).tls(Tls::new().client_pem(identity.certificate, "none")),
            "not a private key",
        ),
        (
            config("redis://127.0.0.1:1").tls(Tls::new()),
            "write `rediss://`",
        ),
        (config("memory:?ca=/ca.pem"), "write `rediss://`"),
    ] {
        let text = refused(config).await;
        assert!(text.contains(says), "{text}");
    }
}

#[tokio::test]
async fn files_are_checked_before_anything_connects() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ca.pem");
    let tls = Tls::new().ca_file(&path);
    // Nobody listens there.
    let config = config("rediss://127.0.0.1:1").tls(tls).lazy();
    for says in ["cannot read", "not a certificate"] {
        let error = config.validate().expect_err("no certificate");
        let text = refused(config.clone()).await;
        assert_eq!(error.to_string(), text);
        let of_the_file = text.contains(says) && text.contains("ca.pem");
        assert!(text.starts_with("invalid tls: ") && of_the_file, "{text}");
        std::fs::write(&path, "none").unwrap();
    }
    std::fs::write(&path, Authority::new().pem()).unwrap();
    config.validate().unwrap();
    drop(connect(config).await);
}

#[tokio::test]
async fn certificates_that_are_replaced_are_used_by_the_next_connection() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let show = |authority: &Authority| authority.issue("client").write(directory.path(), "client");
    show(&ours);
    let client = Tls::new().client_files(path("client.pem"), path("client.key"));
    let tls = client.ca_pem(theirs.pem());
    let server = RedisServer::builder().tls_for(theirs.issue_for_loopback(), &ours);
    let server = server.start().await;
    let locks = connect(encrypted(&server).tls(tls)).await;
    let locked = || within(TIME_LIMIT, locks.lock("key").wait(TIME_LIMIT).acquire());
    drop(locked().await.unwrap());

    // A stranger's, of which the server wants to know nothing.
    show(&theirs);
    server.kill_all_clients().await;
    let (text, _) = unavailable(locked()).await;
    assert!(text.contains("client's certificate"), "{text}");
    // A file that is only half written.
    std::fs::write(path("client.pem"), "none").unwrap();
    eventually(TIME_LIMIT, async || {
        let (text, _) = unavailable(locked()).await;
        text.contains("client.pem")
    })
    .await;

    show(&ours);
    eventually(TIME_LIMIT, async || locked().await.is_ok()).await;
}

#[tokio::test]
async fn no_text_shows_a_key() {
    let identity = Authority::new().issue("client");
    let secret = identity.key.lines().nth(1).unwrap().to_owned();
    let tls = Tls::new().client_pem(identity.certificate, identity.key);
    let text = format!("{:?}", config("rediss://h").tls(tls));
    assert!(!text.contains(&secret), "{text}");
}

// Section: guarantees.md#the-lock-goes-on
#[tokio::test]
async fn an_encrypted_connection_is_made_again() {
    let authority = Authority::new();
    let server = RedisServer::builder().tls(authority.issue_for_loopback());
    let server = server.start().await;
    let locks = connect(encrypted(&server).tls(Tls::new().ca_pem(authority.pem()))).await;
    for _ in 0..5 {
        server.kill_all_clients().await;
        let guard = within(TIME_LIMIT, locks.lock("key").wait(TIME_LIMIT).acquire()).await;
        assert!(guard.unwrap().release_confirmed().await.is_ok());
    }
}
